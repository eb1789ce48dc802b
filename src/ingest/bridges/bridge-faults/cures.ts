// cures.ts: the form of what is said of a fault of a bridge.

import type { BridgeUrl, BridgeTls } from '../bridge-address.ts'

/** Two texts in sentences: the cause, and what to do. */
export type Cure = { why: string; act: string }

/** Where it happened, and what was configured: the texts depend on it. */
export type FaultPlace = {
  url: BridgeUrl
  tls: BridgeTls
  clientId: string
  userName: string | null
  isVersion5: boolean
  /** `connecting`: until CONNACK, `subscribing`: until SUBACK. */
  stage: 'connecting' | 'subscribing' | 'open'
  /** `check --connect`, which uses another client id. */
  isCheck: boolean
  /** What the broker said with its code, in MQTT 5. */
  reasonString: string | null
  serverReference: string | null
}

export function plainCure(why: string, act: string): () => Cure {
  return () => ({ why, act })
}
