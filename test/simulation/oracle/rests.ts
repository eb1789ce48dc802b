// rests.ts: what the database holds when everything is delivered: nothing but what must stay. The numbers of the tables
// are those of a spool of version 1, as they are on the disks of users.

import type { Flips } from '../acts/flip-acts.ts'
import { Database } from '../machine/database.ts'
import type { RetryDelays } from '../delivery-plan.ts'
import type { Fleet } from '../world/fleet.ts'

/** Entries of a table. */
type Rule = { table: number; what: string; least: number; most: number }

/** A live lane, the last backfill lane, and backfill lanes that the next work of each minute deletes. */
const otherLanes = 4

/** State that changed together is one record, until it is put under its own keys or a start does so. */
const changesHead = '\u0014"memory \\"\\" '

type Known = {
  fleet: Fleet
  providers: number
  retryDelays: RetryDelays
  deadLetters: number
  quarantined: number
  flips: Flips
}

export function wrongRests(store: unknown, known: Known): string[] {
  const { fleet, providers, retryDelays, deadLetters, quarantined, flips } = known
  if (!(store instanceof Database)) return ['there is no database']
  const devices = new Set(fleet.messages.map(({ device }) => device.id)).size
  const vehicles = new Set(fleet.messages.flatMap(({ records }) => records.map(({ device }) => device))).size
  const attempts = fleet.messages.reduce((sum, { sentMs }) => sum + sentMs.length, 0)
  const forgotten = fleet.messages.filter(({ isForgotten, qos }) => isForgotten && qos === 2).length
  const changes = countBetween(store, changesHead, `${changesHead}:`)
  if (changes > attempts) return [`the database has ${changes} changes of state, of ${attempts} messages`]
  const rules: Rule[] = [
    { table: 0x10, what: 'chunks', least: 0, most: flips.keys },
    { table: 0x11, what: 'batches', least: 0, most: flips.batches },
    { table: 0x20, what: 'dead letters', least: deadLetters, most: deadLetters },
    { table: 0x21, what: 'kept messages', least: quarantined, most: quarantined },
    // A message of two vehicles is found by both.
    { table: 0x24, what: 'kept messages by device', least: quarantined, most: 2 * quarantined },
    // And the records of lanes that had them, when they are deleted.
    { table: 0x22, what: 'damaged chunks', least: 0, most: 2 * (flips.keys + flips.values) },
    {
      table: 0x23,
      what: 'records set aside',
      least: 0,
      most: flips.keys + flips.batches + flips.deadLetters.length,
    },
    { table: 0x30, what: 'receipts', least: 0, most: 0 },
    // A session of each device, and messages of QoS 2 that a device has forgotten before it released them.
    { table: 0x16, what: 'sessions', least: 0, most: devices + forgotten },
    // What is remembered of each device and vehicle, and each write of messages that changed it.
    { table: 0x14, what: 'entries of state', least: 0, most: 20 * (devices + vehicles) + changes },
    { table: 0x02, what: 'lanes', least: 0, most: providers * (retryLanesOf(retryDelays) + otherLanes) },
  ]
  return rules.flatMap(({ table, what, least, most }) => {
    const count = countOf(store, table)
    const isRight = count >= least && count <= most
    return isRight ? [] : [`the database has ${count} ${what}, and ${least} to ${most} are right`]
  })
}

/**
 * Retry lanes stay when they are empty: one for each rule, step and numbers of answers that counted, by rule. The step is
 * that of the last answer, or the first one where that did not count.
 */
function retryLanesOf(retryDelays: RetryDelays): number {
  const steps = Object.values(retryDelays).map(({ length }) => length)
  const counts = steps.reduce((product, length) => product * (length + 1), 1)
  return steps.reduce((sum, length) => sum + (counts / (length + 1)) * Math.max(1, 2 * length), 0)
}

function countOf(store: Database, table: number): number {
  return countBetween(store, String.fromCharCode(table), String.fromCharCode(table + 1))
}

function countBetween(store: Database, from: string, to: string): number {
  return store.entries(from, to, { reverse: false, limit: -1 }).length
}
