"""A link with a long delay, in a network namespace of its own: the address 10.9.0.2 is this machine, over a TUN device
whose packets come back after the delay with source and destination exchanged; fd09::2 never answers. Needs root and
/dev/net/tun.

usage: unshare -n python3 delayed-link.py DELAY_S COMMAND...
"""
import collections, fcntl, os, select, struct, subprocess, sys, time

delay = float(sys.argv[1])
tun = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
fcntl.ioctl(tun, TUNSETIFF, struct.pack('16sH', b'far', IFF_TUN | IFF_NO_PI))
addresses = ('addr add 10.9.0.1/24 dev far', 'addr add fd09::1/64 dev far nodad')
for words in ('link set lo up', *addresses, 'link set far up'):
    subprocess.run(['ip', *words.split()], check=True)
child = subprocess.Popen(sys.argv[2:])
waiting = collections.deque()
while child.poll() is None:
    left = max(0, waiting[0][0] - time.monotonic()) if waiting else 0.05
    if select.select([tun], [], [], min(left, 0.05))[0]:
        packet = os.read(tun, 65536)
        if packet[0] >> 4 == 4:
            waiting.append((time.monotonic() + delay, packet))
    while waiting and waiting[0][0] <= time.monotonic():
        packet = waiting.popleft()[1]
        os.write(tun, packet[:12] + packet[16:20] + packet[12:16] + packet[20:])
sys.exit(child.returncode)
