// Dead letters are requeued while the daemon is killed again and again; the service gets each payload once.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { openSpool, type SpoolOptions } from '../../src/spool/spool.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { newFolder } from '../support/folders.ts'
import { refusedPayload } from '../support/dead-letters-world.ts'
import { collect } from '../support/open-spool.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { exchangeOf, smallOptions } from '../support/spool-world.ts'

const letters = 20_000
const rounds = 6

const wide: Partial<SpoolOptions> = {
  bytesMax: 1024 ** 3,
  deadLetterBytesMax: 1024 ** 3,
  recentBytesMax: 1024 ** 2,
}

function openBare(path: string) {
  const deps = { clock: systemClock, newId: newRandomId, random: Math.random, emit: () => undefined }
  return openSpool({ ...deps, openStore: openLevelStore, disk: realDisk }, smallOptions(path, wide))
}

type Daemon = { child: ChildProcess; url: string; kill(): Promise<unknown> }

async function startDaemon(config: string): Promise<Daemon> {
  const main = new URL('../../src/main.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [main, 'run', '--config', config], {
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
      AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const line of createInterface({ input: child.stdout })) {
    const { event, addresses } = JSON.parse(line) as { event: string; addresses?: string[] }
    if (event !== 'gateway_ready') continue
    child.stdout.resume()
    return {
      child,
      url: addresses?.find((address) => address.startsWith('http')) ?? '',
      kill() {
        child.kill('SIGKILL')
        return ended
      },
    }
  }
  throw new Error('the daemon ended before it was ready')
}

async function statusOf({ url }: Daemon) {
  const status = (await (await fetch(`${url}/status`)).json()) as {
    lanes: { pending: number; sealed: number }[]
    spool: { deadLetters: number }
  }
  const open = status.lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
  return { open, left: status.spool.deadLetters }
}

describe('kill -9 during a requeue of many', () => {
  test(
    'each payload is in the service once, or still a dead letter; nothing is lost',
    { timeout: 120_000 },
    async () => {
      const { sandbox, url } = await startSandbox()
      const folder = await newFolder()
      const path = join(folder, 'spool')
      const config = join(folder, 'gateway.yaml')
      await writeFile(
        config,
        [
          'ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }',
          'sources: [{ name: a, topic: "a/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]',
          'defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }',
          'spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }',
          `delivery: { base_url: "${url}", batch: { max_payloads: 100, linger: 5ms } }`,
          'ops: { listen: "127.0.0.1:0" }',
        ].join('\n'),
      )
      const before = await openBare(path)
      await before.exchange(
        exchangeOf({ deadLetters: Array.from({ length: letters }, (_, n) => refusedPayload(`truck-${n}`)) }),
      )
      await before.close()

      let interrupted = 0
      for (let round = 0; round < rounds; round += 1) {
        const daemon = await startDaemon(config)
        const atStart = (await statusOf(daemon)).left
        const asked = fetch(`${daemon.url}/control/dead-letters/requeue?all=1`, { method: 'POST' }).catch(
          () => null,
        )
        let left = atStart
        while (left === atStart) left = (await statusOf(daemon)).left
        // Each round a few answers later: within a group, and between two.
        for (let more = 0; more < round; more += 1) left = (await statusOf(daemon)).left
        await daemon.kill()
        await asked
        if (left > 0) interrupted += 1
      }
      expect(interrupted).toBeGreaterThan(1)

      const spool = await openBare(path)
      const left = await collect(spool.deadLetters({ limit: Infinity }))
      const open = spool.lanes().reduce((sum, lane) => sum + lane.open, 0)
      expect((await spool.check(new AbortController().signal)).problems).toEqual([])
      await spool.close()
      // The service may have accepted open payloads already: their batch was in flight.
      expect(left.length + open).toBeLessThanOrEqual(letters)
      expect(left.length + open + sandbox.stats().distinctPayloadIds).toBeGreaterThanOrEqual(letters)

      const last = await startDaemon(config)
      const answer = await fetch(`${last.url}/control/dead-letters/requeue?all=1`, { method: 'POST' })
      expect(await answer.json()).toMatchObject({ payloads: left.length })
      for (;;) {
        const { open, left } = await statusOf(last)
        if (open === 0 && left === 0) break
      }
      await last.kill()
      expect(sandbox.stats()).toMatchObject({
        distinctPayloadIds: letters,
        duplicatesAcrossBatches: 0,
        duplicatesUnderOneBatch: 0,
        repeatsWithOtherBytes: 0,
      })
    },
  )
})
