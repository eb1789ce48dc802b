// address-attempts.ts: how long each address of a name is tried.
//
// Node tries the addresses one after the other and gives each 250 ms, the last one all that is left. Where a
// round trip takes longer and the last address is not routed, no connection is ever made. A lost first
// packet is sent again after a second, so 250 ms are also too short on a link that loses some.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setDefaultAutoSelectFamilyAttemptTimeout, type Socket } from 'node:net'
import { codeOf } from '../gateway-error.ts'

const shareOfLimit = 3
const leastMs = 250
const usualLimitMs = 10_000

/** An option of net.connect(), tls.connect() and http.request(): a third of the whole limit for each. */
export function addressAttempts(connectTimeoutMs: number): { autoSelectFamilyAttemptTimeout: number } {
  return { autoSelectFamilyAttemptTimeout: Math.max(leastMs, Math.round(connectTimeoutMs / shareOfLimit)) }
}

/** For connections of this thread that are opened without that option, such as those of packages. */
export function setAddressAttempts(): void {
  setDefaultAutoSelectFamilyAttemptTimeout(addressAttempts(usualLimitMs).autoSelectFamilyAttemptTimeout)
}

/** What became of the addresses of a name, as Node says it where all have failed. Undefined for one. */
export type Attempts = () => AggregateError | undefined

/**
 * For a limit that ends before all addresses have failed. `connect` begins a connection at once; a package
 * may do that, too, whose socket is not known then.
 */
export function noteAttempts<Made>(connect: () => Made): { made: Made; attempts: Attempts } {
  const found = new Map<string, { code: string; address: string; port: number }>()
  const note = (address: string, port: number, code = 'ETIMEDOUT') =>
    void found.set(`${address} ${port}`, { code, address, port })
  const watch = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    socket.once('connect', () => found.clear())
    socket.on('connectionAttempt', (address, port) => note(address, port))
    socket.on('connectionAttemptFailed', (address, port, _family, error) =>
      note(address, port, codeOf(error)),
    )
  }
  subscribe('net.client.socket', watch)
  try {
    return {
      made: connect(),
      attempts: () => (found.size < 2 ? undefined : new AggregateError(found.values())),
    }
  } finally {
    unsubscribe('net.client.socket', watch)
  }
}
