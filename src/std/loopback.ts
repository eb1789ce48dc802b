// loopback.ts: which hosts are this machine: of an address to listen on, and of the header `Host`. A page can
// let its own name resolve to this machine (DNS rebinding), so a name in `Host` counts only where it is
// one of this machine. An address is no name.

import { isIP } from 'node:net'

/** Whether an address to listen on can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Of the header `Host`: lower case, without brackets, port and the dot of the root. Null: not a host. */
export function hostIn(header: string): string | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/?#@[\]]+))(?::\d{1,5})?$/.exec(header)
  const host = match?.[1] ?? match?.[2]?.replace(/\.$/, '')
  return host === undefined || host === '' ? null : host.toLowerCase()
}

/** Whether it cannot be a rebound name. `own`: names of this machine, in lower case. */
export function isOwnHost(host: string, own: ReadonlySet<string>): boolean {
  return own.has(host) || isLoopback(host) || isIP(host) !== 0
}

/** Whether the page of an `Origin` comes from the host and port in `Host`. */
export function isSameOrigin(origin: string, host: string): boolean {
  const [, scheme] = /^(https?:\/\/)[^\s/?#@]+$/i.exec(origin) ?? []
  if (scheme === undefined || !URL.canParse(origin) || !URL.canParse(scheme + host)) return false
  return new URL(origin).host === new URL(scheme + host).host
}
