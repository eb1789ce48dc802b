# without-syscalls.py: runs a program that gets EPERM from the system calls with the given numbers, as systemd's
# SystemCallFilter makes it.
#
#   python3 without-syscalls.py 141,203 node script.js

import ctypes, os, struct, sys

numbers = [int(number) for number in sys.argv[1].split(",")]
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO, EPERM = 0x7FFF0000, 0x00050000, 1

# The number of the call is the first word that a filter sees.
code = [(LOAD, 0, 0, 0)]
for number in numbers:
    code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | EPERM)]
code += [(RETURN, 0, 0, ALLOW)]
words = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *word) for word in code))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("words", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(code), ctypes.cast(words, ctypes.c_void_p))
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0):
    sys.exit("no seccomp: " + os.strerror(ctypes.get_errno()))
try:
    os.setpriority(os.PRIO_PROCESS, 0, 5)
    sys.exit("the filter does not work")
except PermissionError:
    os.execvp(sys.argv[2], sys.argv[2:])
