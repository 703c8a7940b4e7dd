"""Runs a program under the filter of system calls of a systemd unit, as another user.

    run_filtered.py UNIT USER-ID DENIED PROGRAM [ARGUMENT...]

DENIED is a comma-separated list of further calls that fail, or empty. Groups such as @system-service are resolved by
systemd-analyze. As systemd does, it installs an allow list; a call outside it fails with the unit's error number.
"""

import errno
import os
import re
import subprocess
import sys

import seccomp


def resolve(name):
    """The calls that a name of SystemCallFilter= stands for."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(
        ["systemd-analyze", "--no-pager", "syscall-filter", name], check=True, capture_output=True, text=True
    )
    names = [line.strip() for line in listed.stdout.splitlines()[1:]]
    return {call for each in names if each and not each.startswith("#") for call in resolve(each)}


def read_filter(unit):
    """The calls that a unit allows, and the error number of all others."""
    with open(unit, encoding="utf-8") as file:
        text = file.read()
    # systemd always allows what a program needs to start and end.
    allowed = resolve("@default")
    for value in re.findall(r"^SystemCallFilter=(.*)$", text, re.MULTILINE):
        calls = {call for name in value.removeprefix("~").split() for call in resolve(name)}
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    number = re.search(r"^SystemCallErrorNumber=(\w+)$", text, re.MULTILINE)
    return allowed, getattr(errno, number.group(1))


def main(unit, user, denied, *command):
    allowed, number = read_filter(unit)
    allowed -= set(filter(None, denied.split(",")))
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
    rules = seccomp.SyscallFilter(defaction=seccomp.ERRNO(number))
    for call in sorted(allowed):
        try:
            rules.add_rule(seccomp.ALLOW, call)
        except RuntimeError:
            # A call of another processor, or one that this library does not know.
            continue
    rules.load()
    os.execvp(command[0], command)


main(*sys.argv[1:])
