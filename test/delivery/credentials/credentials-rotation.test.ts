// Credentials in a file that change while delivery runs.

import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createDeliveryWorld } from '../../support/delivery-world.ts'
import type { DeliveryWorld } from '../../support/delivery-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { acceptAll } from '../../support/scripted-service.ts'
import type { Script } from '../../support/scripted-service.ts'

let path: string

beforeEach(async () => {
  path = join(await newFolder(), 'ingestion.json')
})

const write = (accessKeyId: string) => writeFile(path, JSON.stringify({ accessKeyId, secretAccessKey: 's' }))

async function openWorld(script: Script = acceptAll): Promise<DeliveryWorld> {
  const world = await createDeliveryWorld({ script, provider: { credentials: { source: 'file', path } } })
  onTestFinished(() => world.end())
  return world
}

/** The access key of each request. */
const keysOf = ({ service }: DeliveryWorld) =>
  service.received.map(({ headers }) => /Credential=(\w+)/.exec(headers.authorization ?? '')?.[1])

const refusing =
  (refused: string): Script =>
  (received) =>
    received.headers.authorization?.includes(`Credential=${refused}/`) ? { status: 403 } : acceptAll(received)

/** Lets minutes pass, less than the ten to the next probe, until these keys are in use. */
async function watch(world: DeliveryWorld, accessKeyId: string): Promise<void> {
  const untilMs = world.clock.monotonic() + 400_000
  const found = () => world.ofKind('credentials_found').at(-1)?.accessKeyId === accessKeyId
  await eventually(async () => {
    expect(world.clock.monotonic()).toBeLessThan(untilMs)
    await world.clock.advance(2000)
    await world.quiet()
    return found()
  })
  await world.quiet()
}

describe('credentials in a file', () => {
  test('that are corrected after a 403 are used within seconds, without a restart or a command', async () => {
    await write('WRONG')
    const world = await openWorld(refusing('WRONG'))
    await world.publish('a', 'b', 'c')
    await world.quiet()
    expect(world.codes()).toEqual(['ENDPOINT_UNAUTHORIZED'])
    await write('RIGHT')
    // The next probe would be in ten minutes.
    await watch(world, 'RIGHT')
    expect(world.spool.totals().delivered).toBe(3)
    expect(world.delivery.providers()[0]?.endpoint).toBe('available')
  })

  test('that are written again unchanged cause no request', async () => {
    await write('WRONG')
    const world = await openWorld(refusing('WRONG'))
    await world.publish('a', 'b', 'c')
    await world.quiet()
    const requests = world.service.received.length
    await write('WRONG')
    for (let look = 0; look < 20; look += 1) {
      await world.clock.advance(2000)
      await world.quiet()
    }
    expect(world.service.received).toHaveLength(requests)
  })

  test('that change while batches are sent and both are valid cause no refusal', async () => {
    await write('OLD')
    const world = await openWorld()
    await world.publish('a', 'b', 'c')
    await world.quiet()
    await write('NEW')
    await watch(world, 'NEW')
    await world.publish('d', 'e', 'f')
    await world.quiet()
    expect(keysOf(world)).toEqual(['OLD', 'NEW'])
    expect(world.spool.totals().delivered).toBe(6)
  })

  test('that are revoked before the new ones are read cost one refusal: the batch is sent again at once', async () => {
    await write('OLD')
    const world = await openWorld()
    await world.publish('a', 'b', 'c')
    await world.quiet()
    await write('NEW')
    world.service.answer(refusing('OLD'))
    await world.publish('d', 'e', 'f')
    await world.quiet()
    expect(keysOf(world)).toEqual(['OLD', 'OLD', 'NEW'])
    expect(world.spool.totals().delivered).toBe(6)
    expect(world.ofKind('endpoint_changed')).toEqual([])
  })
})

test('a stop does not wait for credentials that do not arrive', async () => {
  const folder = await newFolder()
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  // Nobody writes into it.
  await writeFile(join(folder, 'config'), `[profile slow]\ncredential_process = timeout 60 cat ${pipe}\n`)
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'))
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'))
  onTestFinished(() => void vi.unstubAllEnvs())
  const credentials = { source: 'chain', profile: 'slow' } as const
  const world = await createDeliveryWorld({ provider: { credentials } })
  onTestFinished(() => world.end())
  await world.publish('a', 'b', 'c')
  await world.clock.advance(0)
  await world.delivery.stop(AbortSignal.abort())
  expect(world.spool.lanes()).toMatchObject([{ open: 3 }])
})
