// spool-place-steps.ts: the place of a spool, and what happens to it before and while a daemon runs, as the steps of
// step-cases.ts. In texts, <spool> is its directory and <folder> the one above it.

import { cp, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { checkInThread, openLevelStore, realDisk, type Store } from '../../src/storage/storage.ts'
import { runCli } from './cli-world.ts'
import { killedSpool, tableOf, zeroPage } from './damaged-spool.ts'
import { createFastClock } from './fast-clock.ts'
import { newFolder } from './folders.ts'
import { get } from './ops-world.ts'
import {
  messageOf,
  roundTrip,
  startPipeline,
  topicOf,
  type Pipeline,
  type PipelineOptions,
} from './pipeline-world.ts'

/** The service is not there, so that what is in the spool stays. */
const noService = 'http://127.0.0.1:1'

const isStore = (path: string) => path.endsWith('store')
export const ioError = () => Object.assign(new Error('input/output error'), { code: 'EIO' })

export async function spoolPlace() {
  const folder = await newFolder()
  const faults = { write: false, openings: 0, freeBytes: null as number | null }
  const deps: NonNullable<PipelineOptions['deps']> = {
    checkStore: checkInThread,
    disk: {
      ...realDisk,
      free: async (path) =>
        faults.freeBytes === null ? realDisk.free(path) : { bytes: faults.freeBytes, files: Infinity },
    },
    async openStore(at, options) {
      if (isStore(at) && faults.openings > 0) {
        faults.openings -= 1
        throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      }
      const store = await openLevelStore(at, options)
      return isStore(at) ? { ...store, write: writeOf(store) } : store
    },
  }
  function writeOf(store: Store): Store['write'] {
    return (ops, options) => {
      if (!faults.write) return store.write(ops, options)
      faults.write = false
      return Promise.reject(ioError())
    }
  }
  return {
    folder,
    spool: join(folder, 'spool'),
    faults,
    deps,
    pipelines: [] as Pipeline[],
    mend: async () => {},
    files: [] as string[],
    sent: 0,
    /** The daemon that was started last. */
    get now(): Pipeline {
      return this.pipelines.at(-1)!
    },
  }
}

export type SpoolPlace = Awaited<ReturnType<typeof spoolPlace>>

const spoolText = (create: boolean) =>
  `{ path: ./spool, allow_in_memory: true, create: ${create}, max_bytes: 32MiB, min_free_bytes: 1MiB }`

/** `more`: options of this daemon alone. With `sandbox` there is a service. */
export async function startIn(
  place: SpoolPlace,
  create = true,
  more: PipelineOptions = {},
): Promise<Pipeline> {
  const pipeline = await startPipeline({
    folder: place.folder,
    ...(more.sandbox === undefined && { baseUrl: noService }),
    sections: { spool: spoolText(create) },
    // A refused spool is looked at every second.
    clock: createFastClock(10),
    ...more,
    deps: { ...place.deps, ...more.deps },
  })
  place.pipelines.push(pipeline)
  return pipeline
}

const filled = ({ folder, spool }: SpoolPlace, text: string) =>
  text.replaceAll('<spool>', spool).replaceAll('<folder>', folder)

const openIn = ({ now }: SpoolPlace) =>
  now.status().lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)

async function publish(place: SpoolPlace, count: number): Promise<void> {
  const payloads = Array.from({ length: count }, () => messageOf((place.sent += 1)))
  await place.now.publish('truck-1', ...payloads)
}

export const spoolPlaceWords = {
  start: (place: SpoolPlace, create: boolean) => startIn(place, create),
  stop: ({ now }: SpoolPlace) => now.gateway.stop('SIGTERM'),
  /** A gateway has made its spool, has taken so many payloads, and was stopped. */
  stopped: async (place: SpoolPlace, payloads: number) => {
    const { gateway } = await startIn(place)
    if (payloads > 0) await publish(place, payloads)
    await gateway.stop('SIGTERM')
  },
  killed: ({ spool }: SpoolPlace, payloads: number) => killedSpool(spool, payloads),
  publish,
  /** Not acknowledged by a daemon that has no spool. */
  publishInVain: async ({ now }: SpoolPlace) => {
    const device = await now.device('truck-2').catch(() => null)
    device?.publish({ topic: topicOf('truck-2'), payload: messageOf(9999), messageId: 1 })
    if (device !== null) await roundTrip(device).catch(() => undefined)
    expect(device?.acks ?? []).toEqual([])
  },
  /** The next write of the store fails, which is that of a message. */
  failWrite: async ({ now, faults }: SpoolPlace) => {
    const device = await now.device('truck-1')
    faults.write = true
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(9998), messageId: 2 })
  },
  failOpenings: ({ faults }: SpoolPlace, count: number) => void (faults.openings = count),
  free: ({ faults }: SpoolPlace, bytes: number) => void (faults.freeBytes = bytes),
  zeroPage: async (place: SpoolPlace, page: number) => {
    place.mend = await zeroPage(await tableOf(place.spool), page)
  },
  mend: ({ mend }: SpoolPlace) => mend(),

  makeFolder: (place: SpoolPlace, path: string) => mkdir(filled(place, path)),
  write: (place: SpoolPlace, [path, text]: [string, string]) => writeFile(filled(place, path), text),
  remove: (place: SpoolPlace, path: string) => rm(filled(place, path), { recursive: true }),
  rename: async (place: SpoolPlace, names: Record<string, string>) => {
    for (const [from, to] of Object.entries(names)) await rename(filled(place, from), filled(place, to))
  },
  copy: (place: SpoolPlace, [from, to]: [string, string]) =>
    cp(filled(place, from), filled(place, to), { recursive: true }),
  link: (place: SpoolPlace, [path, to]: [string, string]) => symlink(filled(place, to), filled(place, path)),

  status: ({ now }: SpoolPlace, expected: object) => expect(now.status()).toMatchObject(expected),
  ready: ({ now }: SpoolPlace) => now.until(() => now.status().ready),
  /** Waits for it. */
  condition: async ({ now }: SpoolPlace, [code, expected]: [string, object?]) => {
    await now.until(() => now.condition(code) !== undefined)
    expect(now.condition(code)).toMatchObject(expected ?? {})
  },
  closed: ({ now }: SpoolPlace, codes: string[]) => {
    for (const code of codes) expect(now.condition(code)).toBeUndefined()
  },
  noListener: ({ now }: SpoolPlace) => now.until(() => now.gateway.addresses.mqtt.length === 0),
  asks: async ({ now }: SpoolPlace, [path, status, text = '']: [string, number, string?]) => {
    const answer = await get(now.gateway.addresses.ops, path)
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text)])
  },
  reload: async ({ now }: SpoolPlace, expected: object) =>
    expect(await now.gateway.reload('SIGHUP')).toMatchObject(expected),
  open: (place: SpoolPlace, payloads: number) => expect(openIn(place)).toBe(payloads),
  marker: async ({ spool }: SpoolPlace, expected: object) =>
    expect(JSON.parse(await readFile(join(spool, 'spool.json'), 'utf8'))).toMatchObject(expected),
  has: async (place: SpoolPlace, [path, names]: [string, string[]]) =>
    expect(await readdir(filled(place, path))).toEqual(expect.arrayContaining(names)),
  lacks: async (place: SpoolPlace, [path, names]: [string, string[]]) => {
    const found = await readdir(filled(place, path))
    expect(found.filter((name) => names.includes(name))).toEqual([])
  },
  noteFiles: async (place: SpoolPlace, path: string) =>
    void (place.files = await readdir(filled(place, path))),
  noteTables: async (place: SpoolPlace, path: string) =>
    void (place.files = (await readdir(filled(place, path))).filter((name) => name.endsWith('.ldb'))),
  stillHas: async (place: SpoolPlace, path: string) =>
    expect(await readdir(filled(place, path))).toEqual(expect.arrayContaining(place.files)),
  sameFiles: async (place: SpoolPlace, path: string) =>
    expect(await readdir(filled(place, path))).toEqual(place.files),
  cli: async (place: SpoolPlace, [words, status, text]: [string, number, string]) => {
    const { stdout, stderr, ...ran } = await runCli(filled(place, words).split(' '))
    expect([ran.status, stdout + stderr]).toEqual([status, text])
  },
  /** How the run before ended, as the last daemon says. */
  ends: ({ now }: SpoolPlace, expected: string[]) =>
    expect(now.events.flatMap((one) => (one.kind === 'gateway_ended_unclean' ? [one.end] : []))).toEqual(
      expected,
    ),
  events: ({ now }: SpoolPlace, expected: Record<string, number>) => {
    for (const [kind, count] of Object.entries(expected))
      expect([kind, now.events.filter((one) => one.kind === kind).length]).toEqual([kind, count])
  },
  lastEvent: ({ now }: SpoolPlace, expected: object) => expect(now.events.at(-1)).toMatchObject(expected),
  /** The verdict, /readyz and the condition say why; no listener is open, and the stages are closed. */
  refused: async ({ now }: SpoolPlace, why: string) => {
    const refusal = () =>
      now.status().conditions.find(({ code }) => ['SPOOL_UNUSABLE', 'SPOOL_DAMAGED'].includes(code))
    await now.until(() => refusal() !== undefined && now.status().addresses.length === 0)
    const { startedAt } = now.status()
    await now.until(() => now.status().totals.sinceAt > startedAt)
    const { severity, code, why: shown } = refusal()!
    expect([severity, `${code}: ${shown}`]).toEqual(['critical', expect.stringContaining(why)])
    const { verdict, sentence } = now.status()
    expect(verdict).toBe('not_receiving')
    expect(sentence).toContain('No message came and nothing was accepted since the spool was lost ')
    expect((await get(now.gateway.addresses.ops, '/readyz')).status).toBe(503)
  },
  /** It continues by itself, with everything that was acknowledged. */
  back: async (place: SpoolPlace, payloads: number) => {
    const { now } = place
    await now.until(() => now.status().ready)
    expect(openIn(place)).toBe(payloads)
    await publish(place, 10)
    expect(openIn(place)).toBe(payloads + 10)
    const wrong = ['SPOOL_UNUSABLE', 'SPOOL_DAMAGED', 'WRITES_MISSING', 'CONSERVATION_BROKEN']
    expect(now.codes().filter((code) => wrong.includes(code))).toEqual([])
  },
}
