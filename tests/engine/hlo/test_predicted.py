"""Reading the timeline that XLA's latency-hiding scheduler predicts."""

from __future__ import annotations

import gzip

import pytest

from engine.errors import InputError
from engine.hlo.hlo_pb2 import BF16
from engine.hlo.predicted import is_predicted_schedule, read_predicted_schedule

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


def test_module_order_and_times_are_read() -> None:
    predicted = read_predicted_schedule(gzip.compress(TEXT.encode()), "a.txt")
    module = predicted.module
    parameter, dot = module.entry.instructions
    assert (module.name, parameter.shape.element_type, list(parameter.shape.dimensions)) == ("step", BF16, [8])
    assert list(dot.operand_ids) == [parameter.id, parameter.id]
    assert list(dot.precision_config.operand_precision) == [0, 2]
    assert dot.backend_config == b'{"used":"a\\302\\240b"}'
    assert dot.is_host_transfer
    assert dict(dot.frontend_attributes.map) == {"why": 'a "quote"'}
    assert list(module.proto.schedule.sequences[16].instruction_ids) == [parameter.id, dot.id]
    (order,) = predicted.orders
    assert order.start.tolist() == [0, 1]
    assert order.statistics == {"total_wasted_cycles": 3, "total_cycles": 22.5}
    assert predicted.picoseconds(order.end).tolist() == [952, 21429]


def test_recognises_its_own_kind() -> None:
    assert is_predicted_schedule(TEXT.encode())
    assert is_predicted_schedule(gzip.compress(TEXT.encode()))
    assert not is_predicted_schedule(b"HloModule step")
    assert not is_predicted_schedule(b"\x1f\x8bnot gzip")
    assert not is_predicted_schedule(b"\xff\xfe")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("HloModule step\n", "a.txt:1:1: expected a ScheduleProto"),
        ("", "found no hlo_module"),
        (TEXT[: TEXT.index("    id: 16")], "it ends before it is complete"),
        (TEXT.replace("22.5", "soon", 1), "a.txt:64:27: expected a number, found 'soon'"),
        (TEXT.replace("element_type: BF16", "element_type: BF17"), "expected a value of element_type, found 'BF17'"),
        (TEXT.replace("dimensions: 8", "dimensions: many"), "expected a value of dimensions, found 'many'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        read_predicted_schedule(text.encode(), "a.txt")


@pytest.mark.parametrize("data", [b"\x1f\x8bnot gzip", b"\xff\xfe\x00", gzip.compress(TEXT.encode())[:200]])
def test_damaged_bytes_are_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError, match="expected a ScheduleProto"):
        read_predicted_schedule(data, "a.txt")


def test_every_truncation_is_an_error() -> None:
    lines = TEXT.splitlines(keepends=True)
    for count in range(len(lines)):
        with pytest.raises(InputError):
            read_predicted_schedule("".join(lines[:count]).encode(), "a.txt")
