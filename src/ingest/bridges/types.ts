// types.ts: the options of a bridge (bridge-config.ts has the meaning of each).

import type { Secret } from '../../std/secret.ts'
import type { BridgeTls, BridgeUrl } from './bridge-address.ts'

export type BridgeOptions = {
  kind: 'mqtt'
  name: string
  url: BridgeUrl
  tls: BridgeTls
  topics: readonly string[]
  /**
   * Filters that the session of each client id had, as far as known; those that it must not have any more are
   * unsubscribed, once.
   */
  formerFilters?: Map<string, readonly string[]>
  /** One per connection. */
  clientIds: readonly string[]
  isVersion5: boolean
  shareGroup: string | null
  userName: string | null
  password: Secret | null
  qos: 0 | 1
  /** The broker keeps the session between connections. */
  keepsSession: boolean
  sessionExpiryMs: number
  leavesGroup: boolean
  retained: 'ignore' | 'once'
  window: number
  keepaliveMs: number
  connectTimeoutMs: number
  /** The first pause between two tries; it doubles up to the longest. */
  reconnectFirstMs: number
  reconnectMaxMs: number
  /** If there is no room for this time, it disconnects, and the broker gets the messages back. */
  pauseAfterMs: number
  silentAfterMs: number
  /** The same where none came since the start. */
  unheardAfterMs: number
  packetBytesMax: number
}
