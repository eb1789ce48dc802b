import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { messageOf, roundTrip, startPipeline, topicOf } from '../../support/pipeline-world.ts'

const waiting = (path: string, ...more: string[]) => runCli(['spool', 'waiting', '--path', path, ...more])

/** The spool of a stopped daemon that delivered 2 payloads, with what `publish` made of it. */
async function stopped(
  options: Parameters<typeof startPipeline>[0],
  payloads: readonly string[],
  isDone: (totals: { delivered: number; unmappable: number }) => boolean,
): Promise<string> {
  const folder = await newFolder()
  const pipeline = await startPipeline({ ...options, folder })
  const device = await pipeline.device('truck-1')
  for (const [index, payload] of payloads.entries())
    device.publish({ topic: topicOf('truck-1'), payload, messageId: index + 1 })
  await device.acked(payloads.length)
  await roundTrip(device)
  await pipeline.until(() => isDone(pipeline.status().totals))
  await pipeline.gateway.stop('test')
  return join(folder, 'spool')
}

const away = { baseUrl: 'http://127.0.0.1:1', sections: { delivery: 'batch: { linger: 20ms }, timeout: 1s' } }

describe('spool waiting', () => {
  test('finds nothing where everything is delivered, and changes no file', async () => {
    const spool = await stopped({}, [messageOf(1), messageOf(2)], ({ delivered }) => delivered === 2)
    const before = await readdir(join(spool, 'store'))
    expect(await waiting(spool)).toMatchObject({ status: 0, stdout: `Nothing waits in ${spool}.\n` })
    expect(await readdir(join(spool, 'store'))).toEqual(before)
  })

  test('counts payloads and dead letters, and ends with 1', async () => {
    const spool = await stopped(
      away,
      [messageOf(1), messageOf(2), 'no JSON'],
      ({ unmappable }) => unmappable === 1,
    )
    const { status, stdout } = await waiting(spool)
    expect([status, stdout]).toEqual([1, `Not delivered in ${spool}: 2 payloads, 1 dead letter.\n`])
    const { stdout: json } = await waiting(spool, '--json')
    expect(JSON.parse(json)).toMatchObject({
      payloads: 2,
      deadLetters: 1,
      messages: 0,
      damaged: 0,
      setAside: [],
    })
  })

  test.skipIf(process.getuid?.() !== 0)('says who may read a spool of another user', async () => {
    const folder = await newFolder()
    const spool = join(folder, 'private/spool')
    await mkdir(spool, { recursive: true })
    await chmod(folder, 0o755)
    await chmod(join(folder, 'private'), 0o700)
    process.seteuid?.(65_534)
    onTestFinished(() => process.seteuid?.(0))
    const { status, stderr } = await waiting(spool)
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^SPOOL_UNWRITABLE[^]*EACCES[^]*as root/)])
  })

  test('names databases that were set aside', async () => {
    const spool = await stopped({}, [messageOf(1)], ({ delivered }) => delivered === 1)
    const aside = join(spool, 'store.damaged-20260102T030405678Z')
    await mkdir(aside)
    expect(await waiting(spool)).toMatchObject({ status: 1, stdout: expect.stringContaining(aside) })
  })

  test('ends with 1 where a file is damaged', async () => {
    const spool = await stopped({}, [messageOf(1)], ({ delivered }) => delivered === 1)
    const store = join(spool, 'store')
    for (const name of await readdir(store))
      if (/^\d+\.(ldb|log)$/.test(name)) await writeFile(join(store, name), 'x')
    expect((await waiting(spool)).status).toBe(1)
  })

  test('ends with 0 where there is no spool', async () => {
    expect(await waiting(join(await newFolder(), 'spool'))).toMatchObject({ status: 0 })
  })
})
