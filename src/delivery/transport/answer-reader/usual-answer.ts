// usual-answer.ts: reads the usual answer, whose list of accepted payloads has all of them in the order of
// the batch. The list is compared with the body byte by byte, so no text is made of any payloadId. What
// stands around the list is parsed.

import { randomUUID } from 'node:crypto'
import { payloadHead } from '../../../domain/payload.ts'
import { asRecord } from './answer-text.ts'

/** Where the payloadIds are in the body: `starts` are the starts of the payloads. */
export type IdsInBody = { body: Buffer; starts: Uint32Array }

const listHead = Buffer.from('"accepted":[')
/** Stands for the list while the rest is parsed. No answer can contain it. */
const listMark = randomUUID()

const idBytes = 36
const quote = 0x22
const comma = 0x2c
const bracket = 0x5d

/** The members of the answer but `accepted`; null where it is another answer. */
export function membersAroundList(answer: Buffer, ids: IdsInBody): Record<string, unknown> | null {
  const headAt = answer.indexOf(listHead)
  if (headAt < 0) return null
  const listStart = headAt + listHead.length - 1
  const listEnd = endOfList(answer, listStart, ids)
  if (listEnd < 0) return null
  const members = parsed(
    `${answer.toString('utf8', 0, listStart)}"${listMark}"${answer.toString('utf8', listEnd)}`,
  )
  // Else it is the list of another member, or `accepted` is there twice, and the last one counts.
  return members?.['accepted'] === listMark ? members : null
}

/** -1 where the list is not exactly that of the batch. */
function endOfList(answer: Buffer, listStart: number, { body, starts }: IdsInBody): number {
  const found = new DataView(answer.buffer, answer.byteOffset, answer.length)
  const sent = new DataView(body.buffer, body.byteOffset, body.length)
  let at = listStart
  for (const start of starts) {
    // Behind the bracket or the comma: an id in quotes, and what follows it.
    if (at + idBytes + 3 >= answer.length || answer[at + 1] !== quote) return -1
    if (!isSame(found, at + 2, sent, start + payloadHead.length)) return -1
    if (answer[at + 2 + idBytes] !== quote) return -1
    at += idBytes + 3
    if (answer[at] !== comma) break
  }
  const isWhole = at === listStart + starts.length * (idBytes + 3) && answer[at] === bracket
  return isWhole ? at + 1 : -1
}

/** Four bytes at a time. */
function isSame(found: DataView, at: number, sent: DataView, start: number): boolean {
  for (let byte = 0; byte < idBytes; byte += 4)
    if (found.getUint32(at + byte) !== sent.getUint32(start + byte)) return false
  return true
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return null
  }
}
