// opening-world.ts: the opening of a store on a real directory, with a check whose report the test gives.

import { join } from 'node:path'
import { mkdir } from 'node:fs/promises'
import type { GatewayEvent } from '../../src/domain/event.ts'
import {
  createStoreOpening,
  type OpeningOptions,
  type StoreOpening,
} from '../../src/spool/opening/opening.ts'
import type { CheckReport, CheckRequest, FileDamage } from '../../src/storage/storage.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'
import { newFolder } from './folders.ts'

export const damagedBlock: FileDamage = {
  file: '000005.ldb',
  unit: 'block',
  offset: 4096,
  bytes: 500,
  what: 'its checksum is wrong',
  keys: null,
}

export type OpeningWorld = {
  path: string
  clock: FakeClock
  requests: CheckRequest[]
  events: GatewayEvent[]
  progress: string[]
  report: CheckReport
  /** A start: a new process would have this opening. */
  start(options?: Partial<OpeningOptions>): StoreOpening
}

export async function openingWorld(): Promise<OpeningWorld> {
  const path = join(await newFolder(), 'spool')
  await mkdir(path)
  const clock = createFakeClock()
  const world: OpeningWorld = {
    path,
    clock,
    requests: [],
    events: [],
    progress: [],
    report: { kind: 'ok', damage: [], mendedLogs: [], verified: [], lastSequence: 0, tookMs: 1 },
    start: (options) =>
      createStoreOpening(
        {
          clock,
          emit: (event) => void world.events.push(event),
          bootId: 'boot',
          memory: {},
          onProgress: (text) => void world.progress.push(text),
          async checkStore(request, { onProgress }) {
            world.requests.push(request)
            onProgress({ bytesRead: 3 * 1024 ** 2, bytesTotal: 20 * 1024 ** 3, file: '000005.ldb' })
            return world.report
          },
        },
        { path, onDamage: 'refuse', lastExitPath: join(path, 'last-exit'), ...options },
      ),
  }
  return world
}
