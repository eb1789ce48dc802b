// address-attempts.ts: how long each address of a name is tried.
//
// Node tries the addresses one after the other and gives each 250 ms, the last one all that is left. Where a
// round trip takes longer and the last address is not routed, no connection is ever made. A lost first
// packet is sent again after a second, so 250 ms are also too short on a link that loses some.

import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

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
