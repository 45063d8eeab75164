"""The representations that parts of the engine pass to each other: modules, graphs, shapes, replica groups."""
