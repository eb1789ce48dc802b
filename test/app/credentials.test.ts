// Credentials that change under a running gateway, from the file that systemd or a script of the depot writes.

import { renameSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Answered, SandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'
import type { Pipeline } from '../support/pipeline-world.ts'

const account = (accessKeyId: string, sessionToken?: string): SandboxAccount => ({
  accessKeyId,
  secret: new Secret(`the secret of ${accessKeyId}`),
  ...(sessionToken === undefined ? {} : { sessionToken: new Secret(sessionToken) }),
})

const spring = account('AKIDSPRING')
const summer = account('AKIDSUMMER')
const session = account('AKIDSESSION', 'a-session-token')

type World = {
  pipeline: Pipeline
  path: string
  /** Where new keys are written before they replace the others in one step. */
  prepared: string
  prepare(keys: SandboxAccount): Promise<void>
  rotate(to: SandboxAccount): Promise<void>
  answers: Answered[]
  onAnswer: () => void
}

/** A pipeline that gets its keys as from the unit file of systemd. */
async function startWithFile(
  keys: SandboxAccount | null,
  accounts: readonly SandboxAccount[],
): Promise<World> {
  const folder = await newFolder()
  const directory = join(folder, 'credentials')
  await mkdir(directory)
  const path = join(directory, 'ingestion.json')
  const prepared = `${path}.new`
  const answers: Answered[] = []

  async function prepare({ accessKeyId, secret, sessionToken }: SandboxAccount): Promise<void> {
    const fields = {
      accessKeyId,
      secretAccessKey: secret.reveal(),
      ...(sessionToken && { sessionToken: sessionToken.reveal() }),
    }
    await writeFile(prepared, JSON.stringify(fields), { mode: 0o400 })
  }

  async function rotate(to: SandboxAccount): Promise<void> {
    await prepare(to)
    await rename(prepared, path)
  }

  if (keys !== null) await rotate(keys)
  const pipeline = await startPipeline({
    folder,
    sandbox: {
      accounts,
      onAnswer(answered) {
        answers.push(answered)
        world.onAnswer()
        world.onAnswer = () => undefined
      },
    },
    sections: {
      delivery:
        'credentials: { source: file, path: "${env:CREDENTIALS_DIRECTORY}/ingestion.json" }, ' +
        'batch: { max_payloads: 10, linger: 20ms }',
    },
    deps: { env: { CREDENTIALS_DIRECTORY: directory } },
  })
  const world: World = { pipeline, path, prepared, prepare, rotate, answers, onAnswer: () => undefined }
  return world
}

let clients = 0

async function publish(pipeline: Pipeline, messages: number): Promise<void> {
  clients += 1
  const name = `truck-${clients}`
  const device = await pipeline.device(name)
  for (let n = 0; n < messages; n += 1)
    device.publish({ topic: topicOf(name), payload: messageOf(n), messageId: n + 1 })
  await device.acked(messages)
}

const delivered = (pipeline: Pipeline) => pipeline.status().totals.delivered
const idsFound = (pipeline: Pipeline) =>
  pipeline.events.flatMap((event) => (event.kind === 'credentials_found' ? [event.accessKeyId] : []))

describe('the file in CREDENTIALS_DIRECTORY', () => {
  test('is found under the name that systemd sets, with a session token', async () => {
    const { pipeline, answers } = await startWithFile(session, [session])
    await publish(pipeline, 20)
    await pipeline.until(() => delivered(pipeline) === 20)
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(pipeline.log()).not.toContain('the secret of')
  })

  test('keys that are rotated while both are valid cost no failure', async () => {
    const { pipeline, rotate, answers } = await startWithFile(spring, [spring, summer])
    await publish(pipeline, 20)
    await pipeline.until(() => delivered(pipeline) === 20)
    await rotate(summer)
    let sent = 20
    while (!idsFound(pipeline).includes(summer.accessKeyId)) {
      await publish(pipeline, 10)
      sent += 10
      await pipeline.until(() => delivered(pipeline) === sent)
    }
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: sent, duplicatesAcrossBatches: 0 })
  }, 30_000)

  test('revoked keys are replaced at the first refusal by those in the file', async () => {
    const world = await startWithFile(spring, [summer])
    const { pipeline, answers } = world
    // Before the answer is sent, so that a read of the file because of it finds the new keys.
    world.onAnswer = () => renameSync(world.prepared, world.path)
    await world.prepare(summer)
    await publish(pipeline, 10)
    await pipeline.until(() => delivered(pipeline) === 10)
    expect(answers.map(({ status }) => status)).toEqual([403, 200])
    expect(pipeline.events.some(({ kind }) => kind === 'endpoint_unauthorized')).toBe(false)
  })

  test('a refused account sends again when the file is corrected, not at the next probe', async () => {
    const { pipeline, rotate } = await startWithFile(spring, [summer])
    await publish(pipeline, 10)
    await pipeline.until(() => pipeline.status().providers[0]?.endpoint === 'unauthorized')
    const nextAttemptAt = pipeline.status().providers[0]?.nextAttemptAt ?? ''
    expect(Date.parse(nextAttemptAt) - Date.now()).toBeGreaterThan(400_000)
    await rotate(summer)
    await pipeline.until(() => delivered(pipeline) === 10)
    expect(pipeline.status().conditions.some(({ code }) => code === 'ENDPOINT_UNAUTHORIZED')).toBe(false)
  }, 30_000)

  test('a file that appears after the start is found, and nothing was lost until then', async () => {
    const { pipeline, rotate } = await startWithFile(null, [spring])
    await publish(pipeline, 10)
    await pipeline.until(() => pipeline.events.some(({ kind }) => kind === 'credentials_failed'))
    await rotate(spring)
    await pipeline.until(() => delivered(pipeline) === 10)
    expect(pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: 10 })
  }, 30_000)
})

test('a file of keys that is wrong is a condition from the start on, before any device has sent, until it is corrected', async () => {
  const { pipeline, rotate } = await startWithFile(null, [spring])
  const isOpen = () => pipeline.status().conditions.some(({ code }) => code === 'CREDENTIALS_MISSING')
  await pipeline.until(isOpen)
  expect(pipeline.log()).toMatch(/"level":"error".*"event":"credentials_failed".*ENOENT/)
  await rotate(spring)
  await pipeline.until(() => !isOpen())
})
