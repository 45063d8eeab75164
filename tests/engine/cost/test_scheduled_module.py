"""The module inside a ScheduleProto."""

from __future__ import annotations

import pytest

from engine.cost.scheduled_module import read_scheduled_module
from engine.errors import InputError
from engine.hlo.hlo_pb2 import BF16

TEXT = """hlo_module {
  name: "step"
  entry_computation_name: "main"
  computations {
    name: "main"
    instructions {
      name: "x"
      opcode: "parameter"
      shape {
        element_type: BF16
        dimensions: 8
        layout {
        }
      }
      statistics_viz {
        statistics {
          stat_name: "unknown to us"
        }
      }
      id: 70000000001
    }
    instructions {
      name: "dot.1"
      opcode: "dot"
      id: 70000000002
      operand_ids: 70000000001
      operand_ids: 70000000001
      precision_config {
        operand_precision: DEFAULT
        operand_precision: HIGHEST
      }
      backend_config: "{\\"used\\":\\"a\\\\302\\\\240b\\"}"
      is_host_transfer: true
      frontend_attributes {
        map {
          key: "why"
          value: "a \\"quote\\""
        }
      }
    }
    id: 16
    root_id: 70000000002
  }
  entry_computation_id: 16
  schedule {
    sequences {
      key: 16
      value {
        instruction_ids: 70000000001
      }
    }
  }
}
computation_schedules {
  computation_id: 16
  instructions {
    id: 70000000001
    end_timestamp_cycles: 1
    memory_usage_after: 16
  }
  instructions {
    id: 70000000002
    start_timestamp_cycles: 1
    end_timestamp_cycles: 22.5
  }
  scheduler_statistics {
    total_wasted_cycles: 3
    total_cycles: 22.5
  }
  cycles_per_microsecond: 1050
}
"""


def test_module_and_order_are_read() -> None:
    scheduled = read_scheduled_module(TEXT, "a.txt")
    module = scheduled.module
    parameter, dot = module.entry.instructions
    assert (module.name, parameter.shape.element_type, list(parameter.shape.dimensions)) == ("step", BF16, [8])
    assert list(dot.operand_ids) == [parameter.id, parameter.id]
    assert list(dot.precision_config.operand_precision) == [0, 2]
    assert dot.backend_config == b'{"used":"a\\302\\240b"}'
    assert dot.is_host_transfer
    assert dict(dot.frontend_attributes.map) == {"why": 'a "quote"'}
    assert list(module.proto.schedule.sequences[16].instruction_ids) == [parameter.id, dot.id]
    assert scheduled.schedule.computations[0].names == ("x", "dot.1")


def test_lists_and_other_spacing_are_read_too() -> None:
    text = TEXT.replace("dimensions: 8", "dimensions: [8, 16]").replace(
        "is_host_transfer: true", "is_host_transfer:true"
    )
    module = read_scheduled_module(text, "a.txt").module
    assert list(module.entry.instructions[0].shape.dimensions) == [8, 16]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("element_type: BF16", "element_type: BF17"),
        ("dimensions: 8", "dimensions: many"),
        ("is_host_transfer: true", "is_host_transfer: perhaps"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str) -> None:
    name, _, value = new.partition(": ")
    line = TEXT[: TEXT.index(old)].count("\n") + 1
    with pytest.raises(InputError, match=f"a value of {name} was expected before this, but {value} came") as caught:
        read_scheduled_module(TEXT.replace(old, new), "a.txt")
    assert caught.value.place is not None
    assert caught.value.place.line in (line, line + 1)


def test_every_truncation_is_an_error() -> None:
    lines = TEXT.splitlines(keepends=True)
    for count in range(len(lines)):
        with pytest.raises(InputError):
            read_scheduled_module("".join(lines[:count]), "a.txt")
