// address-share.ts: the key under which the connections of an address are counted: an IPv4 address, or the
// /64 network of an IPv6 address. One device or one subscriber line usually has a whole /64, so counting
// single IPv6 addresses would bound nothing.

/** Shown and counted where the socket no longer knows its address. */
const unknown = 'unknown'

/** The address as text, with IPv4 in its own form: a dual-stack socket reports `::ffff:192.0.2.1`. */
export function plainAddress(address: string | null | undefined): string | null {
  if (address === null || address === undefined || address === '') return null
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  return mapped?.[1] ?? address
}

/** `address` as plainAddress returns it. */
export function shareKeyOf(address: string | null): string {
  if (address === null) return unknown
  return address.includes(':') ? `${network64Of(address)}::/64` : address
}

function network64Of(address: string): string {
  const [head = '', tail] = withoutZone(address).split('::')
  const first = groupsOf(head)
  const last = groupsOf(tail ?? '')
  // An IPv4 address at the end stands for two groups. It is never within the first four.
  const lastCount = last.length + (last.at(-1)?.includes('.') ? 1 : 0)
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - lastCount) }, () => '0')
  return [...first, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

function withoutZone(address: string): string {
  return address.split('%', 1)[0] ?? address
}

function groupsOf(part: string): string[] {
  return part === '' ? [] : part.split(':')
}
