// quiet-aedes.ts: aedes for a broker to which nobody may subscribe: no retained store, no offline queue, no
// emitter; its own $SYS messages end here too.

import { Aedes } from 'aedes'

export type PublishPacket = Parameters<Aedes['authorizePublish']>[1]
export type Done = (error?: Error | null) => void

export class QuietAedes extends Aedes {
  // aedes calls it with or without the sending client before the callback; its types know of one form only.
  override publish(_packet: PublishPacket, clientOrDone: unknown, last?: Done): void {
    const done = typeof clientOrDone === 'function' ? (clientOrDone as Done) : last
    done?.(null)
  }
}
