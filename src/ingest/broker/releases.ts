// releases.ts: a client releases a message of QoS 2 (PUBREL). Its identifier is forgotten, in a write where
// it was stored, and PUBCOMP follows that.

import type { Intake } from '../intake/intake.ts'
import type { ClientLink, ClientSession } from '../types.ts'
import type { Gate } from './gate/gate.ts'

type Deps = { intake: Pick<Intake, 'storeReturn'> & { links: Pick<Intake['links'], 'release'> } }
type ReleasingGate = Pick<Gate, 'link' | 'release'>

export function createReleases({ intake }: Deps) {
  return { release }

  /** [MQTT-4.3.3-2]: an identifier that is not known is released, too. A lost store delays PUBCOMP. */
  function release(gate: ReleasingGate, messageId: number): void {
    const { link } = gate
    if (!link?.session) return
    const { session } = link
    const storeReturn = intake.storeReturn()
    const released =
      storeReturn === null
        ? releaseNow(link, session, messageId)
        : storeReturn.then(() => releaseNow(link, session, messageId))
    gate.release(messageId, released)
  }

  function releaseNow(link: ClientLink, session: ClientSession, messageId: number): Promise<unknown> | null {
    const forgotten = session.unreleasedCount === 0 ? null : session.release(messageId)
    if (session.stored) return forgotten
    const noted = intake.links.release(link, messageId)
    return noted === null || forgotten === null ? (noted ?? forgotten) : Promise.all([noted, forgotten])
  }
}
