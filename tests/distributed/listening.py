"""The TCP sockets on which processes listen, and this machine's addresses, as Linux lists them."""

import os
import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

LISTEN = "0A"  # the kernel's number of this state


def descendants(process: int) -> set[int]:
    """A process, its children, their children, and so on."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_the_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(stat.parent.name)] = int(after_the_name[1])
    family = {process}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def sockets(process: int) -> set[tuple[IPv4Address | IPv6Address, int]]:
    """Address and port of each socket on which a process or one of its descendants listens."""
    inodes = {
        inode
        for member in descendants(process)
        for link in Path(f"/proc/{member}/fd").iterdir()
        for inode in re.findall(r"socket:\[(\d+)\]", _target(link))
    }
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[column] for column in (1, 3, 9))
            if state == LISTEN and inode in inodes:
                address, _, port = local.partition(":")
                found.add((_address(address), int(port, 16)))
    return found


def own_addresses() -> list[IPv4Address | IPv6Address]:
    """This machine's addresses other than loopback and those that need the name of an interface."""
    table = Path("/proc/net/fib_trie").read_text()
    v4 = re.findall(r"([\d.]+)\n\s+/32 host LOCAL", table)
    v6 = Path("/proc/net/if_inet6")
    lines = v6.read_text().splitlines() if v6.exists() else []
    own = {ip_address(a) for a in v4} | {IPv6Address(int(line.split()[0], 16)) for line in lines}
    return sorted((a for a in own if not a.is_loopback and not a.is_link_local), key=str)


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed in between
        return ""


def _address(words: str) -> IPv4Address | IPv6Address:
    """From hexadecimal words of 32 bits, each in the byte order of the machine."""
    parts = [int(words[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(words), 8)]
    return ip_address(b"".join(parts))
