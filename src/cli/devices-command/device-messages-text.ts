// device-messages-text.ts: the last messages of a device for a person: raw, what they became, and what became
// of each payload.

import { zonedTime } from '../../std/clock.ts'
import { plural } from '../../std/quantity.ts'
import { bounded, visible } from '../../std/quote.ts'
import type { MessageOutcome, ShownDevice } from '../../ops/ops.ts'
import type { Explained } from '../../mapping/mapping.ts'
import { explainedText } from '../map-command/explain-text.ts'
import { mapResultText } from '../terminal/text-format.ts'

type ShownMessage = NonNullable<ShownDevice['lastMessages']>[number]

const rawLengthMax = 400

/** `width` of the terminal, for tables. */
export function messagesText(
  { lastMessages = [], lastMessagesSkipped = 0 }: Pick<ShownDevice, 'lastMessages' | 'lastMessagesSkipped'>,
  width: number,
): string {
  if (lastMessages.length === 0) return '\nno messages are kept\n'
  const skipped = lastMessagesSkipped === 0 ? '' : `, ${lastMessagesSkipped} more were not kept`
  const lines = lastMessages.flatMap((message) => messageLines(message, width))
  return `\nlast ${plural(lastMessages.length, 'message')}, the newest first${skipped}\n${lines.join('\n')}\n`
}

function messageLines(message: ShownMessage, width: number): string[] {
  const { at, topic, payloads, explained } = message
  const raw = message.message ?? `hex ${message.hex ?? ''}`
  const { cutBytes = 0 } = message
  const cut = cutBytes === 0 ? '' : ` (${plural(cutBytes, 'byte')} more)`
  return [
    `  ${zonedTime(at)} ${visible(topic)}`,
    `    raw     ${visible(bounded(raw, rawLengthMax))}${cut}`,
    `    became  ${becameText(message)}`,
    ...payloads.flatMap(({ payloadId, payload, outcomes }) => [
      `    payload ${visible(JSON.stringify(payload))}`,
      ...outcomeTexts(outcomes).map((text) => `      ${payloadId} ${text}`),
    ]),
    ...(explained === undefined
      ? []
      : explainedText(explained as Explained, becameText(message), width - 4)
          .trimEnd()
          .split('\n')
          .map((line) => `    ${line}`)),
  ]
}

function becameText({ became, reason, cutBytes = 0, payloads: { length: payloads } }: ShownMessage): string {
  if (became === 'payloads' && cutBytes > 0)
    return 'payloads; it was cut when it was kept, and is not mapped again'
  if (became === 'payloads' && payloads === 0) return 'payloads, which the mapping in force does not make'
  if (became !== 'payloads' && payloads > 0)
    return `${became} when it came; ${plural(payloads, 'payload')} by the mapping in force`
  const kept = Array.from({ length: payloads })
  return visible(mapResultText({ kind: became, payloads: kept, reason: reason ?? 'by another mapping' }))
}

/** The newest first. */
function outcomeTexts(outcomes: readonly MessageOutcome[] | null): string[] {
  if (outcomes === null) return ['no ledger can be asked']
  if (outcomes.length === 0) return ['waits in the spool, or its result is not in the ledger yet']
  return outcomes.map(({ at, outcome, requestId, reason, detail }) => {
    const why = reason === null ? '' : `, ${reason}${detail === null ? '' : `: ${detail}`}`
    return visible(`${outcome} ${zonedTime(at)}, requestId ${requestId ?? '-'}${why}`)
  })
}
