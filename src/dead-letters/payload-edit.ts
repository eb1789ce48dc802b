// payload-edit.ts: replaces the payload of a dead letter by a corrected one and requeues it.

import { GatewayError, messageOf } from '../std/gateway-error.ts'
import {
  editedPayloadId,
  invalidDeadLetter,
  isSameReading,
  requeuedPayload,
  validatePayload,
} from './payload-validation.ts'
import { knownProvider, waitForSpace } from './payload-writer.ts'
import type { DeadLetterCounters, DeadLetterDeps, EditReport } from './types.ts'

export async function editPayload(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  { id, text }: { id: string; text: string },
  signal: AbortSignal,
): Promise<EditReport> {
  const { spool, emit } = deps
  const entry = await spool.deadLetter(id)
  if (entry === null) throw noSuchDeadLetter(id)
  const { stage, payload: before, payloadId: previousPayloadId, provider: providerName } = entry.deadLetter
  if (stage !== 'delivery' || previousPayloadId === null)
    throw invalidDeadLetter(`Dead letter ${id} has no payload to edit.`, [
      'it is a message that could not be mapped: correct the mapping and requeue it',
    ])
  const provider = knownProvider(deps, providerName)
  if (provider === null)
    throw invalidDeadLetter(`Dead letter ${id} cannot be sent.`, ['its provider is no longer in the config'])
  const cannotSend = `The payload for dead letter ${id} cannot be sent.`
  const validation = validatePayload(parse(text, cannotSend), previousPayloadId)
  if (validation.kind === 'invalid') throw invalidDeadLetter(cannotSend, validation.problems)
  const { payload } = validation
  if (payload.payloadId !== previousPayloadId)
    throw invalidDeadLetter(cannotSend, [
      `its payloadId is not ${previousPayloadId}: do not change it, a new reading gets a new one automatically`,
    ])
  const payloadId = isSameReading(before, payload) ? previousPayloadId : editedPayloadId(provider, payload)
  await waitForSpace(deps, signal)
  if (signal.aborted)
    throw new GatewayError('DAEMON_REFUSED', {
      what: `Dead letter ${id} was not edited.`,
      why: 'The client closed the connection before the spool had space.',
      act: 'Nothing was changed. Try again.',
    })
  await spool.exchange({
    take: [id],
    payloads: [requeuedPayload(provider, payloadId, payload)],
    deadLetters: [],
    stateChanges: [],
  })
  counters.requeued += 1
  emit({ kind: 'dead_letter_edited', id, payloadId, previousPayloadId })
  return { id, payloadId, previousPayloadId }
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalidDeadLetter(what, [`it is not JSON: ${messageOf(error)}`])
  }
}

export function noSuchDeadLetter(id: string): GatewayError {
  return new GatewayError('SPOOL_ENTRY_GONE', {
    what: `There is no dead letter ${id}.`,
    why: 'The id is wrong, or the dead letter was requeued, mapped or deleted.',
    act: 'Nothing was changed. List the dead letters again.',
  })
}
