// killable-returns.ts: a process that gives payloads back (src/delivery/returns) and is killed with signal 9 before or
// right after a write of the spool, or after payloads were stored in the engine, which is a file here.
//
//   node killable-returns.ts SCENARIO KILL-AT FOLDER     KILL-AT: number of the moment, from 1; 0: never

import { appendFileSync, closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { createDelivery } from '../../src/delivery/delivery.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { openSpool, type Spool } from '../../src/spool/spool.ts'
import { openLevelStore, realDisk, type OpenStore } from '../../src/storage/storage.ts'
import { providerOptions } from './delivery-world.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'
import { createScriptedSender } from './scripted-sender.ts'
import { failAll, type Script } from './scripted-service.ts'
import { payloadNamed, smallOptions } from './spool-world.ts'

export const scenarios = ['retries', 'refused'] as const

export type Scenario = (typeof scenarios)[number]

export const payloads = ['a', 'b', 'c']

const refused: Script = () => ({ status: 400, body: { requestId: 'r', message: 'no' } })
const scripts: Record<Scenario, Script> = {
  retries: failAll('Validation'),
  refused,
}

async function publish(spool: Spool, name: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    spool.append(payloadNamed(name))
    spool.endMessage((fault) => (fault === null ? resolve() : reject(fault)))
  })
}

async function passUntil(clock: FakeClock, holds: () => boolean): Promise<void> {
  while (!holds()) await clock.advance(100)
}

async function run(scenario: Scenario, killAt: number, folder: string): Promise<void> {
  const clock = createFakeClock()
  let isArmed = false
  let moments = 0
  const moment = () => {
    if (!isArmed) return
    moments += 1
    if (moments === killAt) process.kill(process.pid, 'SIGKILL')
  }
  const openStore: OpenStore = async (path, options) => {
    const store = await openLevelStore(path, options)
    return {
      ...store,
      async write(ops, how) {
        moment()
        await store.write(ops, how)
        moment()
      },
    }
  }
  const emit = () => undefined
  const random = () => 0.5
  const spool = await openSpool(
    { clock, newId: newRandomId, random, emit, openStore, disk: realDisk },
    smallOptions(join(folder, 'spool')),
  )
  const { senderWorker } = createScriptedSender({ clock }, scripts[scenario])
  const batch = { payloadsMax: scenario === 'refused' ? 1 : 3, bodyBytesMax: 64 * 1024, lingerMs: 1000 }
  const delivery = createDelivery(
    { spool, clock, random, emit, env: {}, senderWorker },
    { providers: [providerOptions('http://127.0.0.1:1', { batch })], maxInFlightTotal: 4, ledger: true },
  )
  for (const name of payloads) await publish(spool, name)
  const { returns } = delivery
  const { signal } = new AbortController()
  const engine = openSync(join(folder, 'engine'), 'a')
  const hand = async (handed: readonly { payloadId: string }[]) => {
    for (const { payloadId } of handed) appendFileSync(engine, `${payloadId}\n`)
    fsyncSync(engine)
    moment()
  }
  const request = { olderThanMs: 60_000, payloadsMax: 1000, providersDown: [] }
  const isSettled = () =>
    scenario === 'retries' ? spool.totals().retried === 3 : spool.totals().heldBatches === 3
  delivery.start()
  await passUntil(clock, isSettled)
  await delivery.stop(AbortSignal.abort())
  await clock.advance(120_000)
  isArmed = true
  let all = 0
  for (;;) {
    const returned = await returns.returnWaiting(request, hand, signal)
    if (returned === 0) break
    all += returned
  }
  if (all !== payloads.length) throw new Error(`${all} payloads were returned`)
  isArmed = false
  closeSync(engine)
  await spool.close()
}

const [, program, scenario, killAt, folder] = process.argv
if (program === import.meta.filename && folder !== undefined)
  await run(scenario as Scenario, Number(killAt), folder)
