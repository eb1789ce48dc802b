// Credentials from the file that systemd or a script of the depot writes. What a rotation does:
// test/delivery/credentials/credentials-rotation.test.ts.

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'

const account: SandboxAccount = {
  accessKeyId: 'AKIDSESSION',
  secret: new Secret('the secret of this session'),
  sessionToken: new Secret('a-session-token'),
}
const keys = {
  accessKeyId: 'AKIDSESSION',
  secretAccessKey: 'the secret of this session',
  sessionToken: 'a-session-token',
}

/** A pipeline that gets its keys as from the unit file of systemd, and what writes them. */
async function start({ hasKeys }: { hasKeys: boolean }) {
  const folder = await newFolder()
  const directory = join(folder, 'credentials')
  await mkdir(directory)
  const write = () => writeFile(join(directory, 'ingestion.json'), JSON.stringify(keys), { mode: 0o400 })
  if (hasKeys) await write()
  const pipeline = await startPipeline({
    folder,
    sandbox: { accounts: [account] },
    sections: {
      delivery:
        'credentials: { source: file, path: "${env:CREDENTIALS_DIRECTORY}/ingestion.json" }, ' +
        'batch: { max_payloads: 10, linger: 20ms }',
    },
    deps: { env: { CREDENTIALS_DIRECTORY: directory } },
  })
  return { pipeline, write }
}

const messages = (count: number) => Array.from({ length: count }, (_, n) => messageOf(n))

test('the file is found under the name that systemd sets, with a session token', async () => {
  const { pipeline } = await start({ hasKeys: true })
  await pipeline.publish('truck-1', ...messages(20))
  await pipeline.until(() => pipeline.status().totals.delivered === 20)
  expect(pipeline.sandbox.stats().refusedRequests).toEqual({})
  expect(pipeline.log()).not.toContain('the secret of')
})

test('a file that is missing is a condition from the start on, until it appears, and nothing was lost until then', async () => {
  const { pipeline, write } = await start({ hasKeys: false })
  const isOpen = () => pipeline.codes().includes('CREDENTIALS_MISSING')
  await pipeline.until(isOpen)
  expect(pipeline.log()).toMatch(
    /"level":"error".*"event":"condition_raised","code":"CREDENTIALS_MISSING".*ENOENT/,
  )
  await pipeline.publish('truck-1', ...messages(10))
  await write()
  await pipeline.until(() => pipeline.status().totals.delivered === 10)
  expect(isOpen()).toBe(false)
  expect(pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: 10 })
}, 30_000)
