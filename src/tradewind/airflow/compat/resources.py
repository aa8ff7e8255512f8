"""`airflow.utils.operator_resources`: the resources that a task needs."""

from __future__ import annotations

__all__ = ["EB", "GB", "MB", "PB", "TB", "CpuResource", "DiskResource", "GpuResource", "RamResource", "Resource", "Resources"]

MB = 1
GB = 1024 * MB
TB = 1024 * GB
PB = 1024 * TB
EB = 1024 * PB


class Resource:
    """An amount of one resource.

    Args:
        qty: the amount, in `units_str`.
    """

    def __init__(self, name: str, units_str: str, qty: float) -> None:
        self.name, self.units_str, self.qty = name, units_str, qty

    def to_dict(self) -> dict[str, object]:
        """Return the resources as plain values."""
        return {"name": self.name, "qty": self.qty, "units_str": self.units_str}


class CpuResource(Resource):
    """Processor cores."""

    def __init__(self, qty: float) -> None:
        super().__init__("CPU", "core(s)", qty)


class RamResource(Resource):
    """Memory in MB."""

    def __init__(self, qty: float) -> None:
        super().__init__("RAM", "MB", qty)


class DiskResource(Resource):
    """Disk space in MB."""

    def __init__(self, qty: float) -> None:
        super().__init__("Disk", "MB", qty)


class GpuResource(Resource):
    """Graphics processors."""

    def __init__(self, qty: float) -> None:
        super().__init__("GPU", "gpu(s)", qty)


class Resources:
    """The resources that a task needs. They are recorded, but not reserved."""

    def __init__(self, cpus: float = 1, ram: float = 512, disk: float = 512, gpus: float = 0) -> None:
        self.cpus, self.ram = CpuResource(cpus), RamResource(ram)
        self.disk, self.gpus = DiskResource(disk), GpuResource(gpus)

    def to_dict(self) -> dict[str, dict[str, object]]:
        """Return the resources as plain values."""
        return {name: getattr(self, name).to_dict() for name in ("cpus", "ram", "disk", "gpus")}
