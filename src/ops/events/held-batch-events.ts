// held-batch-events.ts: the event of batches that are held because of their own answers, and what a person
// can do for each reason.

import { plural } from '../../std/quantity.ts'
import type { EventOf } from '../../domain/event.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import { forProvider, sentence } from './event-text.ts'
import type { EventSpec } from './types.ts'

type Changed = EventOf<'held_batches_changed'>

const askSupport = 'Ask the support of the service whether it processed the batchId (`batches list`).'

/** Also for `batches list`. */
export const heldActs: Record<HeldReason, string> = {
  repeated:
    `${askSupport} If it did, run \`batches mark-delivered\`; if not, \`batches reissue\`. ` +
    '`delivery.on_repeat` decides this for all such batches.',
  refused_repeat:
    `${askSupport} If it did, run \`batches mark-delivered\`; if not, \`batches split\` finds the payload at ` +
    'fault. `delivery.on_refused_repeat` decides this for all such batches.',
  forbidden:
    'A firewall in front of the service may refuse the content: give its operator the requestId. The gateway ' +
    'retries the same bytes; `batches split` separates the payloads.',
  stuck:
    'Ask the support of the service about the batchIds (`batches list`). The gateway keeps retrying the same ' +
    'bytes; `batches split` sends the payloads under new batchIds.',
  unlisted:
    `${askSupport} If it did, run \`batches mark-delivered\`; if not, \`batches reissue\`. The gateway keeps ` +
    'retrying the same bytes.',
  not_accepted:
    'Read the words of the service above. The gateway tries again when the service accepts something, and ' +
    'at growing intervals.',
  deferred:
    'Nothing: the gateway waits as the service asked, ten minutes at most. If this continues, ask the support of ' +
    'the service why it defers these batches.',
  incomplete_answer:
    'Raise `delivery.max_response_bytes`, or ask the support of the service why its answers are so large.',
  dead_letters_full: 'Requeue or purge dead letters, or raise their limit. Then these batches continue.',
}

const keyOf = ({ provider, reason }: Changed) => `${provider}|${reason}`

export const heldBatchesChanged: EventSpec<Changed> = {
  meaning: 'A batch is held because of the answers of the service to it, or is held no longer.',
  level: 'debug',
  text: heldText,
  raises: {
    BATCHES_HELD: (event) => (event.reason === 'stuck' ? null : causeOf(event)),
    BATCH_STUCK: (event) => (event.reason === 'stuck' ? causeOf(event) : null),
  },
  clears: {
    BATCHES_HELD: (event) => (event.batches === 0 ? keyOf(event) : undefined),
    BATCH_STUCK: (event) => (event.batches === 0 ? keyOf(event) : undefined),
  },
}

/** Null where no batch is held for the reason any more. */
function causeOf(event: Changed) {
  if (event.batches === 0) return null
  const latest = event.batchId === null ? '' : ` Latest: batch ${event.batchId}: ${sentence(event.why)}`
  const requestId = event.requestId === null ? '' : ` requestId ${event.requestId}.`
  return {
    key: keyOf(event),
    what: heldText(event),
    why: `Reason ${event.reason}: ${heldReasons[event.reason]}.${latest}${requestId}`,
    act: heldActs[event.reason],
    present: event.batches,
  }
}

function heldText({ provider, batches, payloads, oldestAt }: Changed): string {
  const what = `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
  const since = batches === 0 ? '' : `, the oldest since ${new Date(oldestAt).toISOString()}`
  return `Held${forProvider(provider)}: ${what}${since}.`
}
