// A daemon that has had a spool opens that spool again or none: what is at its path meanwhile is not opened,
// nothing is made there, and when the spool is back, the daemon continues with it. The simulation also unmounts it, moves
// it away, and puts the spool of another gateway in its place.

import { cp, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkInThread } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, roundTrip, startPipeline, topicOf, type Pipeline } from '../support/pipeline-world.ts'

/** The service is not there, so that what is in the spool stays. */
const noService = { baseUrl: 'http://127.0.0.1:1', deps: { checkStore: checkInThread } }

const messages = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => messageOf(from + n))

async function stoppedSpool(folder: string, payloads: number): Promise<void> {
  const pipeline = await startPipeline({ folder, ...noService })
  await pipeline.publish('truck-1', ...messages(1, payloads))
  await pipeline.gateway.stop('SIGTERM')
}

const openPayloads = (pipeline: Pipeline) =>
  pipeline.status().lanes.reduce((sum, lane) => sum + lane.pending + lane.sealed, 0)

const refusal = (pipeline: Pipeline) =>
  pipeline.status().conditions.find(({ code }) => ['SPOOL_UNUSABLE', 'SPOOL_DAMAGED'].includes(code))

/** With what the verdict, /readyz and the condition say, and no listener. */
async function expectRefused(pipeline: Pipeline, why: string): Promise<void> {
  await pipeline.until(() => refusal(pipeline) !== undefined && pipeline.status().addresses.length === 0)
  // The stages are closed.
  const { startedAt } = pipeline.status()
  await pipeline.until(() => pipeline.status().totals.sinceAt > startedAt)
  const { severity, why: shown, code } = refusal(pipeline)!
  expect([severity, `${code}: ${shown}`]).toEqual(['critical', expect.stringContaining(why)])
  const { verdict, sentence } = pipeline.status()
  expect(verdict).toBe('not_receiving')
  expect(sentence).toContain('No message came and nothing was accepted since the spool was lost ')
  expect((await fetch(`${pipeline.gateway.addresses.ops}/readyz`)).status).toBe(503)
}

/** It continues by itself, with everything that was acknowledged. */
async function expectBack(pipeline: Pipeline, payloads: number): Promise<void> {
  await pipeline.until(() => pipeline.status().ready)
  expect(refusal(pipeline)).toBeUndefined()
  expect(openPayloads(pipeline)).toBe(payloads)
  await pipeline.publish('truck-1', ...messages(1000, 1009))
  expect(openPayloads(pipeline)).toBe(payloads + 10)
  for (const code of ['WRITES_MISSING', 'CONSERVATION_BROKEN']) expect(pipeline.codes()).not.toContain(code)
}

type Way = {
  name: string
  why: string
  /** Before the daemon starts. */
  prepare?: (folder: string) => Promise<void>
  /** Payloads that are in the spool then. */
  before?: number
  replace: (spool: string) => Promise<unknown>
  /** That nothing was made in its place. `files`: of its database, before the daemon looked. */
  check: (spool: string, files: string[]) => Promise<void>
  putBack: (spool: string) => Promise<unknown>
}

const away = (spool: string) => rename(spool, `${spool}.away`)
const back = (spool: string) => rename(`${spool}.away`, spool)
const hasNone = (folderOf: (spool: string) => string, names: string[]) => async (spool: string) => {
  const found = await readdir(folderOf(spool))
  for (const name of names) expect(found).not.toContain(name)
}
const unchanged: Way['check'] = async (spool, files) =>
  expect(await readdir(join(spool, 'store'))).toEqual(files)
const parent = (spool: string) => join(spool, '..')

const ways: Way[] = [
  {
    name: 'a new empty directory',
    why: 'SPOOL_MISSING',
    async replace(spool) {
      await away(spool)
      await mkdir(spool)
    },
    check: hasNone((spool) => spool, ['store', 'mark', 'records', 'ballast']),
    async putBack(spool) {
      await rm(spool, { recursive: true })
      await back(spool)
    },
  },
  {
    name: 'an empty directory of the database',
    why: 'The store is empty, and the mark beside it shows that data was stored',
    async replace(spool) {
      await rename(join(spool, 'store'), join(spool, '../away'))
      await mkdir(join(spool, 'store'))
    },
    async check(spool) {
      expect((await readdir(join(spool, 'store'))).filter((name) => name !== 'LOCK')).toEqual([])
    },
    async putBack(spool) {
      await rm(join(spool, 'store'), { recursive: true })
      await rename(join(spool, '../away'), join(spool, 'store'))
    },
  },
  {
    name: 'a link that leads nowhere',
    why: 'SPOOL_MISSING',
    async prepare(folder) {
      await mkdir(join(folder, 'disk'))
      await symlink(join(folder, 'disk'), join(folder, 'spool'))
    },
    replace: (spool) => rename(join(spool, '../disk'), join(spool, '../away')),
    check: hasNone(parent, ['disk']),
    putBack: (spool) => rename(join(spool, '../away'), join(spool, '../disk')),
  },
  {
    name: 'an older copy of itself',
    why: 'older copy',
    before: 10,
    async prepare(folder) {
      await stoppedSpool(folder, 10)
      await cp(join(folder, 'spool'), join(folder, 'spool.old'), { recursive: true })
    },
    async replace(spool) {
      await away(spool)
      await rename(`${spool}.old`, spool)
    },
    check: unchanged,
    async putBack(spool) {
      await rename(spool, `${spool}.old`)
      await back(spool)
    },
  },
]

test.each(ways)(
  'a spool that is replaced while the daemon runs, by $name, is refused, and nothing is made there',
  { timeout: 30_000 },
  async ({ why, prepare, before = 0, replace, check, putBack }) => {
    const folder = await newFolder()
    const spool = join(folder, 'spool')
    await prepare?.(folder)
    const pipeline = await startPipeline({ folder, ...noService })
    await pipeline.publish('truck-1', ...messages(before + 1, 50))
    const device = await pipeline.device('truck-2')
    await replace(spool)
    const files = await readdir(join(spool, 'store')).catch(() => [])
    await expectRefused(pipeline, why)
    device.publish({ topic: topicOf('truck-2'), payload: messageOf(1), messageId: 1 })
    await roundTrip(device).catch(() => undefined)
    expect(device.received.filter(({ cmd }) => cmd === 'puback')).toEqual([])
    await check(spool, files)
    await putBack(spool)
    await expectBack(pipeline, 50)
  },
)
