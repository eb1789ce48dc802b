// payload-edit.ts: a payload that was refused goes on as somebody mended it.

import { GatewayError, messageOf } from '../std/gateway-error.ts'
import type { PayloadId } from '../domain/ids.ts'
import type { DeadLetterCounters, DeadLetterDeps } from './dead-letters.ts'
import {
  isSameReading,
  validatePayload,
  payloadIdOf,
  requeuedPayload,
  invalidFault,
} from './payload-validation.ts'
import { providerOf, waitForRoom } from './requeue.ts'

export type EditReport = {
  id: string
  payloadId: PayloadId
  /** The one that it had. */
  previousPayloadId: PayloadId
}

export async function editPayload(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  id: string,
  text: string,
  signal: AbortSignal,
): Promise<EditReport> {
  const { spool, emit } = deps
  const entry = await spool.deadLetter(id)
  if (entry === null) throw noSuchDeadLetter(id)
  const { stage, payload: before, payloadId: was } = entry.deadLetter
  if (stage !== 'delivery' || was === null)
    throw invalidFault(`Dead letter ${id} has no payload to edit.`, [
      'it is a message that could not be mapped: mend the mapping and requeue it',
    ])
  const provider = providerOf(deps, entry.deadLetter.provider)
  if (provider === null)
    throw invalidFault(`Dead letter ${id} cannot be sent.`, ['its provider is not in the config any more'])
  const judged = validatePayload(parsed(id, text), was)
  if (judged.kind === 'unfit')
    throw invalidFault(`The payload for dead letter ${id} cannot be sent.`, judged.problems)
  const { payload } = judged
  if (payload.payloadId !== was)
    throw invalidFault(`The payload for dead letter ${id} cannot be sent.`, [
      `its payloadId is not ${was}: leave it as it is, a new one is made where device or time changed`,
    ])
  const payloadId = isSameReading(before, payload) ? was : payloadIdOf(provider, payload)
  await waitForRoom(deps, signal)
  if (signal.aborted)
    throw new GatewayError('DAEMON_REFUSED', {
      what: `Dead letter ${id} was not edited.`,
      why: 'Whoever asked did not wait until the spool had room.',
      act: 'Nothing was changed. Try again.',
    })
  await spool.exchange({
    take: [id],
    payloads: [requeuedPayload(provider, payloadId, payload)],
    deadLetters: [],
    stateChanges: [],
  })
  counters.requeued += 1
  emit({ kind: 'dead_letter_edited', id, payloadId, previousPayloadId: was })
  return { id, payloadId, previousPayloadId: was }
}

function parsed(id: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalidFault(`The payload for dead letter ${id} cannot be sent.`, [
      `it is no JSON: ${messageOf(error)}`,
    ])
  }
}

export function noSuchDeadLetter(id: string): GatewayError {
  return new GatewayError('SPOOL_ENTRY_GONE', {
    what: `There is no dead letter ${id}.`,
    why: 'It was requeued, mapped or deleted, or it never was.',
    act: 'Nothing was changed. List them again.',
  })
}
