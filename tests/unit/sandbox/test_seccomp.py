"""The filter, run by a small machine of the kind that the kernel has."""

import errno
import struct
from pathlib import Path

import pytest

from contextbase.errors import MachineProblem
from contextbase.sandbox.model import Network
from contextbase.sandbox.seccomp import NEWEST_CALL, REFUSED_CALLS, seccomp_filter

AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
ALLOWED, KILLED = 0x7FFF_0000, 0x8000_0000


def answer(program: bytes, machine: int, number: int, *arguments: int) -> int:
    data = struct.pack("=IIQ6Q", number & 0xFFFF_FFFF, machine, 0, *(list(arguments) + [0] * 6)[:6])
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    value = place = 0
    while True:
        operation, when_true, when_false, operand = code[place]
        place += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return int(operand)
            case 0x15:
                place += when_true if value == operand else when_false
            case 0x25:
                place += when_true if value > operand else when_false
            case 0x35:
                place += when_true if value >= operand else when_false
            case _:
                pytest.fail(f"an instruction {operation:#x} that is not known here")


def refused(number: int) -> int:
    return 0x0005_0000 | number


@pytest.mark.parametrize("machine", sorted(AUDIT))
def test_what_is_on_the_list_is_refused_and_what_is_not_is_allowed(machine: str) -> None:
    program = seccomp_filter(Network.NONE, machine=machine)
    numbers = set(REFUSED_CALLS[machine].values())
    assert {answer(program, AUDIT[machine], number) for number in numbers} == {refused(errno.EPERM)}
    read, write, exit_group = {"x86_64": (0, 1, 231), "aarch64": (63, 64, 94)}[machine]
    assert {answer(program, AUDIT[machine], number) for number in (read, write, exit_group)} == {ALLOWED}
    assert answer(program, AUDIT[machine], NEWEST_CALL + 1) == refused(errno.ENOSYS)


@pytest.mark.parametrize("machine", sorted(AUDIT))
def test_calls_by_another_convention_end_the_process(machine: str) -> None:
    program = seccomp_filter(Network.LOOPBACK, machine=machine)
    assert answer(program, 0x4000_0003, 1) == KILLED  # 32 bits, where numbers mean something else
    assert answer(program, AUDIT[machine], 0x4000_0000 | 1) == KILLED
    assert answer(program, AUDIT[machine], -1) == KILLED


@pytest.mark.parametrize("machine", sorted(AUDIT))
@pytest.mark.parametrize(("network", "families"), [(Network.NONE, {1}), (Network.LOOPBACK, {1, 2, 10, 16})])
def test_sockets_are_of_the_families_that_the_network_allows(
    machine: str, network: Network, families: set[int]
) -> None:
    program = seccomp_filter(network, machine=machine)
    number = {"x86_64": 41, "aarch64": 198}[machine]
    allowed = {family for family in range(64) if answer(program, AUDIT[machine], number, family) == ALLOWED}
    assert allowed == families


def test_a_machine_that_is_not_known_is_refused() -> None:
    with pytest.raises(MachineProblem, match="sparc"):
        seccomp_filter(Network.NONE, machine="sparc")


@pytest.mark.parametrize(
    ("machine", "header"),
    [("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "/usr/include/asm-generic/unistd.h")],
)
def test_the_numbers_are_the_kernels(machine: str, header: str) -> None:
    place = Path(header)
    known = {}
    for line in place.read_text().splitlines() if place.exists() else []:
        words = line.split()
        if len(words) == 3 and words[0] == "#define" and words[1].startswith("__NR_") and words[2].isdigit():
            known[words[1].removeprefix("__NR_")] = int(words[2])
    wrong = {name: number for name, number in REFUSED_CALLS[machine].items() if known.get(name, number) != number}
    assert wrong == {}
