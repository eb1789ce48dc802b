// damage-base.ts: the spool that every cell of a damage run starts from: what a daemon left that was killed
// with signal 9 while the service did not answer. Made by the real daemon from real MQTT messages.
//
//   pending payloads, some of them in sealed batches that were sent and not answered
//   dead letters (no JSON), quarantined messages (unlisted devices), open records of `coalesce`
//   a ledger of what was delivered before

import { copyFile, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileKind } from './cells.ts'
import type { Content } from '../support/driver/device.ts'
import { Fleet } from '../support/driver/fleet.ts'
import { openService, type Service } from '../support/driver/service.ts'
import { layoutOf, type FileLayout } from './file-layout.ts'
import { startDaemon, type Daemon } from '../support/driver/daemon.ts'

export type BaseSize = { delivered: number; pending: number; deadLetters: number; kept: number; open: number }

export const fullSize: BaseSize = {
  delivered: 6000,
  pending: 100_000,
  deadLetters: 300,
  kept: 200,
  open: 100,
}
/** For a sample of cells. */
export const smallSize: BaseSize = { delivered: 3000, pending: 20_000, deadLetters: 100, kept: 60, open: 30 }

export type DamageBase = {
  /** Directory of the spool, which nobody changes. */
  readonly spoolPath: string
  readonly size: BaseSize
  /** The time of payload 0. */
  readonly firstTime: number
  /** Payload numbers of each batch that was sent without an answer. */
  readonly sealed: ReadonlyMap<string, readonly number[]>
  readonly files: readonly BaseFile[]
}

export type BaseFile = { fileKind: FileKind; file: string; bytes: number; layout: FileLayout }

const batchPayloads = 500
/** Batches that are sealed and sent when the daemon is killed. */
const inFlight = 2
const window = 1000

export function configText({ spoolPath, serviceUrl }: { spoolPath: string; serviceUrl: string }): string {
  return `ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true }, limits: { max_messages_per_s: 1000000 } } }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time: { path: ts, format: ms }
      latitude: { path: gps.lat }
      longitude: { path: gps.lon }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odometer.value, unit: km }
  - name: tanks
    topic: tanks/{device}/{field}
    coalesce: { name: "{field}", complete: [level, heat], window: 10m }
    map:
      signals:
        - { type: LEVEL, path: level }
        - { type: HEAT, path: heat }
devices: { file: devices.csv, unknown: quarantine }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ${JSON.stringify(spoolPath)}, max_bytes: 2GiB, min_free_bytes: 1MiB }
delivery:
  base_url: ${serviceUrl}
  batch: { max_payloads: ${batchPayloads}, linger: 50ms }
  max_in_flight: 8
  timeout: 60s
clocks: { trust_local: true }
ops: { listen: "127.0.0.1:0" }
`
}

const truckCount = 50

/** The config and its device table. */
export async function writeConfig(folder: string, spoolPath: string, serviceUrl: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const names = [
    ...Array.from({ length: truckCount }, (_, n) => `truck-${n}`),
    ...Array.from({ length: 1000 }, (_, n) => `tank-${n}`),
  ]
  await writeFile(
    join(folder, 'devices.csv'),
    `device,asset_id\n${names.map((name) => `${name},${name}`).join('\n')}\n`,
  )
  const path = join(folder, 'gateway.yaml')
  await writeFile(path, configText({ spoolPath, serviceUrl }))
  return path
}

export async function makeBase(folder: string, size: BaseSize): Promise<DamageBase> {
  // In the past, so that no device time is in the future.
  const firstTime = Date.now() - 600_000 - size.delivered - size.pending
  await using service = await openService()
  const spoolPath = join(folder, 'base', 'spool')
  const config = await writeConfig(join(folder, 'base'), spoolPath, service.url)
  const gateway = startDaemon(config)
  try {
    await fill(gateway, service, size, firstTime)
  } finally {
    await gateway.kill()
  }
  const sealed = new Map(openBatches(service, size, firstTime))
  const files: BaseFile[] = []
  for (const [file, fileKind] of await damagedFiles(spoolPath)) {
    const { size: bytes } = await stat(join(spoolPath, file))
    files.push({ fileKind, file, bytes, layout: await layoutOf(join(spoolPath, file), fileKind, firstTime) })
  }
  return { spoolPath, size, firstTime, sealed, files }
}

async function fill(gateway: Daemon, service: Service, size: BaseSize, firstTime: number): Promise<void> {
  const ready = await gateway.ready
  if (ready === null) throw new Error(`the daemon ended: ${gateway.log()}`)
  const contents = [...contentsOf(size, firstTime)]
  const fleet = new Fleet([{ name: 'fleet', window, message: (n) => contents[n - 1]! }])
  let isOver = false
  const served = fleet.serve(
    () => `mqtt://127.0.0.1:${ready.mqttPort}`,
    () => !isOver,
  )
  fleet.grant(size.delivered)
  await until('the first payloads are delivered', () => service.arrivals.length >= size.delivered)
  await ledgerFilled(gateway)
  service.setFaults({ after_commit: { hang: 1 } })
  fleet.grant(contents.length - size.delivered)
  await fleet.quiet()
  await until('batches are in submission', () => openBatches(service, size, firstTime).length >= inFlight)
  isOver = true
  fleet.disconnect()
  await served
}

function* contentsOf(size: BaseSize, firstTime: number): Iterable<Content> {
  const truckOf = (number: number) => ({
    topic: `telemetry/v1/truck-${number % truckCount}`,
    payload: truckText(firstTime, number),
  })
  for (let number = 0; number < size.delivered; number += 1) yield truckOf(number)
  const others = Math.max(size.deadLetters, size.kept, size.open)
  for (let step = 0; step < size.pending; step += 1) {
    yield truckOf(size.delivered + step)
    // Spread over the payloads, so that they are in tables and in the log.
    if (step % Math.floor(size.pending / others) !== 0) continue
    const index = step / Math.floor(size.pending / others)
    if (index < size.deadLetters) yield { topic: 'telemetry/v1/truck-1', payload: `not JSON ${index}` }
    if (index < size.kept)
      yield { topic: `telemetry/v1/stranger-${index % 20}`, payload: truckText(firstTime, index) }
    if (index < size.open)
      yield { topic: `tanks/tank-${index}/level`, payload: JSON.stringify({ level: index }) }
  }
}

/** Payload numbers of the batches without an answer. */
function openBatches(service: Service, { delivered }: BaseSize, firstTime: number): [string, number[]][] {
  return [...numbersIn(service, firstTime)].filter(([, numbers]) => (numbers[0] ?? 0) >= delivered)
}

/** Payload numbers by batchId. */
export function numbersIn(service: Service, firstTime: number): Map<string, number[]> {
  return new Map([...service.batches()].map(([id, times]) => [id, times.map((time) => time - firstTime)]))
}

function truckText(firstTime: number, number: number): string {
  return JSON.stringify({
    ts: firstTime + number,
    gps: { lat: 48 + (number % 9973) / 1e5, lon: 9 + (number % 7919) / 1e5 },
    // 0.05 m in each millisecond: 180 km/h.
    odometer: { value: (1_800_000_000 + number) / 20_000 },
  })
}

/** Each query makes the ledger copy what waits. */
async function ledgerFilled(gateway: Daemon): Promise<void> {
  await until('the ledger has entries', async () => {
    const response = await fetch(`${gateway.opsUrl() ?? ''}/ledger?limit=1`)
    const { entries } = (await response.json()) as { entries: unknown[] }
    return entries.length > 0
  })
}

/** Polls, because the daemon is another process. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  boundMs = 120_000,
): Promise<void> {
  const endMs = performance.now() + boundMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not reached within ${boundMs} ms: ${what}`)
    await new Promise((resolve) => {
      setTimeout(resolve, 20)
    })
  }
}

/** Every file that a cell can damage, relative to the spool. */
async function damagedFiles(spoolPath: string): Promise<[file: string, kind: FileKind][]> {
  const found: [string, FileKind][] = []
  for (const folder of ['store', 'records']) {
    for (const name of (await readdir(join(spoolPath, folder))).sort()) {
      const kind = kindOf(name)
      if (kind === null) continue
      const { size } = await stat(join(spoolPath, folder, name))
      if (size === 0) continue
      found.push([join(folder, name), folder === 'records' ? 'records' : kind])
    }
  }
  if ((await readdir(spoolPath)).includes('mark')) found.push(['mark', 'mark'])
  return found
}

function kindOf(name: string): FileKind | null {
  if (/\.(ldb|sst)$/.test(name)) return 'table'
  if (/^\d+\.log$/.test(name)) return 'log'
  if (name.startsWith('MANIFEST-')) return 'MANIFEST'
  return name === 'CURRENT' ? 'CURRENT' : null
}

/** Copies a spool without the files that only a running daemon has. */
export async function copySpool(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.isDirectory()) await copySpool(join(from, entry.name), join(to, entry.name))
    else if (entry.isFile() && entry.name !== 'ballast')
      await copyFile(join(from, entry.name), join(to, entry.name))
  }
}
