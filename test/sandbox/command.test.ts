import { PassThrough } from 'node:stream'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runCommandLine } from '../../src/cli/cli.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { commandIo, runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { batchOf, call, signed, telemetry, type SignOptions } from '../support/sandbox-world.ts'

/** Starts the command on a port of its own, and waits until it says where. */
async function start(...argv: string[]) {
  const stop = new AbortController()
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const io = commandIo({ stdout, stderr, stop: stop.signal })
  const ended = runCommandLine(['sandbox', '--listen', '127.0.0.1:0', '--json', ...argv], io)
  onTestFinished(async () => {
    stop.abort()
    await ended
  })
  await Promise.race([once(stdout, 'readable'), ended])
  const line = String(stdout.read())
  const { url, accounts } = JSON.parse(line) as { url: string; accounts: string[] }
  const batch = async (options: SignOptions = {}) =>
    call(await signed(`${url}/v2/telemetry/batch`, JSON.stringify(batchOf([telemetry()])), Date, options))
  return { url, accounts, batch, stderr, stop: () => (stop.abort(), ended) }
}

describe('sandbox', () => {
  test('prints its address and account, serves, and ends with status 0 on a signal', async () => {
    const { accounts, batch, stop } = await start()
    expect(accounts).toEqual([sandboxAccount.accessKeyId])
    expect((await batch()).status).toBe(200)
    expect(await stop()).toBe(0)
    await expect(batch()).rejects.toThrow('fetch failed')
  })

  test('prints the secret of the public account, and no other secret', async () => {
    const stop = AbortSignal.abort()
    const known = await runCli(['sandbox', '--listen', '127.0.0.1:0'], { stop })
    expect(known.stdout).toMatch(
      /^Ingestion API listening at http:\/\/127\.0\.0\.1:\d+, account SANDBOXACCOUNT with the secret/,
    )
    const own = await runCli(['sandbox', '--listen', '127.0.0.1:0', '--account', 'ME:my-secret'], { stop })
    expect(own).toMatchObject({ status: 0, stderr: '' })
    expect(own.stdout).toMatch(/, account ME\.\n$/)
  })

  test('takes accounts, tokens and aggregators', async () => {
    const { batch } = await start(
      '--account=ONE:first:secret',
      '--account=TWO:second',
      '--session-token=TWO:token',
      '--aggregator=ONE=north,south',
      '--missing-provider-status=422',
    )
    const one = { accessKeyId: 'ONE', secret: new Secret('first:secret') }
    const two = { accessKeyId: 'TWO', secret: new Secret('second') }
    expect((await batch()).status).toBe(403)
    expect((await batch({ account: one })).status).toBe(422)
    expect((await batch({ account: one, headers: { 'x-provider-key': 'south' } })).status).toBe(200)
    expect((await batch({ account: two })).status).toBe(403)
    expect((await batch({ account: two, sessionToken: 'token' })).status).toBe(200)
  })

  test('takes faults from a file, and writes what it accepted', async () => {
    const folder = await newFolder()
    const [faults, accepted] = [join(folder, 'faults.yaml'), join(folder, 'accepted.ndjson')]
    await writeFile(faults, '# first a 503, then well\n- { count: 1, always: 503, retry_after: 2s }\n')
    const { batch, stderr } = await start(
      '--faults',
      faults,
      '--accepted',
      accepted,
      '--accepted-sync',
      '--log',
    )
    expect((await batch()).status).toBe(503)
    expect((await batch()).status).toBe(200)
    expect((await readFile(accepted, 'utf8')).trimEnd().split('\n')).toHaveLength(1)
    expect(String(stderr.read())).toMatch(/^503 POST "\/v2\/telemetry\/batch" \S+ injected: .*\n200 POST/)
  })

  test('takes limits', async () => {
    const { batch, url } = await start('--max-body', '300B', '--base-path', '/prod', '--repeat', 'conflict')
    expect(url).toMatch(/\/prod$/)
    expect((await batch()).status).toBe(413)
  })

  test('takes the fields that a payload must have', async () => {
    const { batch } = await start('--require', 'timestamp', 'carrier')
    expect((await batch()).status).toBe(200)
  })

  test('an address in use is status 1', async () => {
    const { url } = await start()
    expect(await runCli(['sandbox', '--listen', new URL(url).host])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('ADDRESS_IN_USE') as string,
    })
  })
})
