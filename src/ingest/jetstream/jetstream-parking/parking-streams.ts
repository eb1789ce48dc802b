// parking-streams.ts: the streams of custody `delivered`, and the durable of the parked entries: created with
// `provision: true`, checked in any case.
//
// The subject of a stream is `<name>.+`. A topic of MQTT must not have a `+` (MQTT 3.3.2-2), and NATS refuses
// one: so no device can store an entry by publishing, whatever its rights are. A stream that takes other
// subjects, too, is reported.

import type { StreamConfig } from '@nats-io/jetstream'
import type { CustodyQueue } from '../../message-sources/types.ts'
import type { Connection } from '../nats-connection.ts'
import { apiCode, notFound } from '../nats-faults.ts'
import { withReplicas, type SetupFinding } from '../stream-setup/stream-setup.ts'
import type { JetStreamOptions } from '../types.ts'

export type ParkingOptions = Pick<JetStreamOptions, 'prefix' | 'provision'>

export type ParkingFindings = { missing: readonly SetupFinding[]; different: readonly SetupFinding[] }

const queues: readonly CustodyQueue[] = ['parked', 'dead']
export const parkedAckWaitMs = 120_000
const ackPendingMax = 10_000

export function parkingName({ prefix }: Pick<ParkingOptions, 'prefix'>, queue: CustodyQueue): string {
  return `${prefix}-${queue}`
}

export function parkingSubject(options: Pick<ParkingOptions, 'prefix'>, queue: CustodyQueue): string {
  return `${parkingName(options, queue)}.+`
}

const retentionOf = (queue: CustodyQueue) => (queue === 'parked' ? 'workqueue' : 'limits')

/** Creates what is missing; resolves with the streams that were. */
export async function createParking({ jsm }: Connection, options: ParkingOptions): Promise<CustodyQueue[]> {
  const created: CustodyQueue[] = []
  for (const queue of queues) {
    const name = parkingName(options, queue)
    if ((await jsm.streams.info(name).catch(ifMissing)) !== null) continue
    await withReplicas((num_replicas) =>
      jsm.streams.add({
        name,
        subjects: [parkingSubject(options, queue)],
        retention: retentionOf(queue),
        storage: 'file',
        discard: 'new',
        num_replicas,
      }),
    )
    created.push(queue)
  }
  const parked = parkingName(options, 'parked')
  if ((await jsm.consumers.info(parked, parked).catch(ifMissing)) !== null) return created
  await jsm.consumers.add(parked, {
    durable_name: parked,
    ack_policy: 'explicit',
    deliver_policy: 'all',
    ack_wait: parkedAckWaitMs * 1e6,
    max_deliver: -1,
    max_ack_pending: ackPendingMax,
  })
  return created
}

/** What is missing, and what would lose entries or let others store some; each with its command. */
export async function parkingFindings(
  { jsm }: Connection,
  options: ParkingOptions,
): Promise<ParkingFindings> {
  const missing: SetupFinding[] = []
  const different: SetupFinding[] = []
  for (const queue of queues) {
    const name = parkingName(options, queue)
    const info = await jsm.streams.info(name).catch(ifMissing)
    if (info === null)
      missing.push({
        detail: `The stream ${name} does not exist, in which custody stores ${contents[queue]}`,
        act: `Run: ${streamCommand(options, queue)}. Or set provision: true.`,
      })
    else different.push(...streamDifferences(info.config, options, queue))
  }
  const parked = parkingName(options, 'parked')
  const durable = await jsm.consumers.info(parked, parked).catch(ifMissing)
  if (durable === null)
    missing.push({
      detail: `The durable ${parked} of the stream ${parked} does not exist, by which parked entries come back`,
      act: `Run: ${durableCommand(parked)}. Or set provision: true.`,
    })
  else if (durable.config.ack_policy !== 'explicit' || (durable.config.max_deliver ?? -1) > 0)
    different.push({
      detail: `The durable ${parked} must have ack_policy explicit and no max_deliver`,
      act: `Run: nats consumer rm ${parked} ${parked} --force && ${durableCommand(parked)}. The entries stay in the stream.`,
    })
  return { missing, different }
}

const contents: Record<CustodyQueue, string> = {
  parked: 'what waits longer than others',
  dead: 'copies of dead letters',
}

function streamDifferences(
  { subjects, max_age, max_msgs, max_bytes, discard, retention }: StreamConfig,
  options: ParkingOptions,
  queue: CustodyQueue,
): SetupFinding[] {
  const name = parkingName(options, queue)
  const subject = parkingSubject(options, queue)
  const edit = `nats stream edit ${name} --force`
  const found: SetupFinding[] = []
  if (subjects.join(' ') !== subject)
    found.push({
      detail:
        `The stream ${name} takes the subjects ${subjects.join(', ') || 'of no one'}, and must take ${subject} alone, ` +
        'which no device can publish to',
      act: `Run: ${edit} --subjects='${subject}'.`,
    })
  if (max_age > 0)
    found.push({
      detail: `The stream ${name} deletes entries by age (max_age)`,
      act: `Run: ${edit} --max-age=0.`,
    })
  if ((max_msgs > 0 || max_bytes > 0) && discard !== 'new')
    found.push({
      detail: `The stream ${name} has a limit, and deletes the oldest entries at it`,
      act: `Run: ${edit} --discard=new.`,
    })
  if (retention === 'interest')
    found.push({
      detail: `The stream ${name} keeps nothing without a consumer (retention interest)`,
      act: `Empty and remove it, then run: ${streamCommand(options, queue)}.`,
    })
  return found
}

function streamCommand(options: ParkingOptions, queue: CustodyQueue): string {
  const retention = queue === 'parked' ? 'work' : 'limits'
  return (
    `nats stream add ${parkingName(options, queue)} --subjects='${parkingSubject(options, queue)}' ` +
    `--retention=${retention} --storage=file --discard=new --replicas=3 --defaults`
  )
}

function durableCommand(name: string): string {
  return (
    `nats consumer add ${name} ${name} --pull --ack=explicit --deliver=all --wait=2m --max-deliver=-1 ` +
    `--max-pending=${ackPendingMax} --defaults`
  )
}

export function isMissingParking(error: unknown): boolean {
  const code = apiCode(error)
  return code === notFound.stream || code === notFound.consumer
}

function ifMissing(error: unknown): null {
  if (isMissingParking(error)) return null
  throw error
}
