import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { send } from '../../support/ops-world.ts'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { refusedMessage, refusedPayload, telemetryOf } from '../../support/dead-letters-world.ts'
import { openSpoolWorld } from '../../support/open-spool.ts'
import { messageOf, startPipeline, topicOf, type Pipeline } from '../../support/pipeline-world.ts'
import { exchangeOf } from '../../support/spool-world.ts'
import { useElsewhere } from '../../support/spool-process.ts'

const refuses = (rule: Record<string, unknown>) => ({
  fail: [{ error_type: 'Validation', message: 'The speed is not valid.', ...rule }],
})

async function publish(pipeline: Pipeline, clientId: string, payloads: readonly string[]): Promise<void> {
  const device = await pipeline.device(clientId)
  for (const [index, payload] of payloads.entries())
    device.publish({ topic: topicOf(clientId), payload, messageId: index + 1 })
  await device.acked(payloads.length)
}

async function idsIn(url: string, ...filters: string[]): Promise<string[]> {
  const { stdout } = await runCli(['dead-letters', 'list', '--json', '--url', url, ...filters])
  return (JSON.parse(stdout) as { deadLetters: { id: string }[] }).deadLetters.map(({ id }) => id)
}

/** Three refused payloads in the dead letters. An accepted fourth one proves that the service works. */
async function threeRefused(): Promise<Pipeline & { url: string }> {
  const pipeline = await startPipeline({
    sections: { delivery: 'batch: { linger: 20ms }, errors: { Validation: [] }' },
    sandbox: { faults: refuses({ has: 'signals', field: 'signals.0.value' }) },
  })
  await publish(pipeline, 'truck-1', [messageOf(1), messageOf(2)])
  await publish(pipeline, 'truck-2', [messageOf(3)])
  await publish(pipeline, 'witness', [messageOf(4, { odometer: undefined })])
  await pipeline.until(
    () => pipeline.status().spool.deadLetters === 3 && pipeline.status().totals.delivered === 1,
  )
  return { ...pipeline, url: pipeline.gateway.addresses.control }
}

describe('payloads that the service refused', () => {
  test('are corrected in $EDITOR and delivered under their payloadId', async () => {
    const pipeline = await threeRefused()
    const [id = ''] = await idsIn(pipeline.url)
    const before = JSON.parse(
      (await runCli(['dead-letters', 'show', id, '--json', '--url', pipeline.url])).stdout,
    ) as {
      deadLetter: { payloadId: string }
    }
    // The service accepts the payload without signals.
    const script = `const fs=require('fs');const f=process.argv[1];const p=JSON.parse(fs.readFileSync(f));delete p.signals;fs.writeFileSync(f,JSON.stringify(p))`
    const env = { PATH: process.env['PATH'], EDITOR: `${process.execPath} -e ${JSON.stringify(script)}` }
    const edited = await runCli(['dead-letters', 'edit', id, '--url', pipeline.url], { env })
    expect(edited.stdout).toBe(
      `Payload ${before.deadLetter.payloadId} will be sent to the ingestion API again.\n`,
    )
    await pipeline.until(() => pipeline.status().totals.delivered === 2)
    expect(pipeline.sandbox.received({ limit: 1 })).toMatchObject([
      { payload: { payloadId: before.deadLetter.payloadId } },
    ])
    expect(pipeline.status().spool.deadLetters).toBe(2)

    const [next = ''] = await idsIn(pipeline.url)
    const shown = await runCli(['dead-letters', 'show', next, '--json', '--url', pipeline.url])
    const { payload } = (JSON.parse(shown.stdout) as { deadLetter: { payload: Record<string, unknown> } })
      .deadLetter
    const stdin = JSON.stringify({ ...payload, signals: undefined, signalTimestamp: 1_763_000_000_000 })
    const other = await runCli(['dead-letters', 'edit', next, '--file', '-', '--url', pipeline.url], {
      stdin,
    })
    expect(other.stdout).toMatch(/^Payload [0-9a-f-]{36} will be sent .*; it is another reading than /)
    await pipeline.until(() => pipeline.status().totals.delivered === 3)
  })

  test('an edit or import over HTTP that is not UTF-8 is refused', async () => {
    const pipeline = await threeRefused()
    const { control } = pipeline.gateway.addresses
    const [id = ''] = await idsIn(pipeline.url)
    for (const path of [`edit?id=${id}`, 'import-plan', `import?import=${'0'.repeat(32)}`]) {
      const body = Buffer.from('{"carrier":"M\xfcller"}', 'latin1')
      const answer = await send(control, `/control/dead-letters/${path}`, { method: 'POST', body })
      expect(await answer.json()).toMatchObject({ why: 'The body of the request is not UTF-8.' })
      expect(answer.status).toBe(400)
    }
  })

  test('an edit that is not a payload is refused, and the text is kept in a file', async () => {
    const pipeline = await threeRefused()
    const [id = ''] = await idsIn(pipeline.url)
    const env = { PATH: process.env['PATH'], EDITOR: 'sh -c \'echo "{}" > "$0"\'' }
    const edited = await runCli(['dead-letters', 'edit', id, '--url', pipeline.url], { env })
    expect([edited.status, edited.stderr.split('\n', 1)[0]]).toEqual([1, 'DEAD_LETTER_INVALID'])
    const kept = /--file (\S+)/.exec(edited.stderr)?.[1] ?? ''
    onTestFinished(() => rm(join(kept, '..'), { recursive: true, force: true }))
    expect(await readFile(kept, 'utf8')).toBe('{}\n')
    const unchanged = await runCli(['dead-letters', 'edit', id, '--url', pipeline.url], {
      env: { PATH: process.env['PATH'], EDITOR: 'true' },
    })
    expect(unchanged.stdout).toMatch(/^Nothing was changed/)
    const failed = await runCli(['dead-letters', 'edit', id, '--url', pipeline.url], {
      env: { PATH: process.env['PATH'], EDITOR: 'false' },
    })
    expect(failed.stderr).toMatch(/^INPUT_UNREADABLE/)
    expect(await idsIn(pipeline.url)).toContain(id)
  })

  test('are imported from a large file or from stdin once, and an error names the line of the file', async () => {
    const pipeline = await startPipeline()
    const { control: url } = pipeline.gateway.addresses
    const file = join(await newFolder(), 'large.ndjson')
    // More than one request can take, with a last line that has no end.
    const padding = 'x'.repeat(1000)
    const lines = Array.from({ length: 7000 }, (_, n) =>
      JSON.stringify({ kind: 'payload', provider: 'default', padding, payload: telemetryOf(`truck-${n}`) }),
    )
    const requeue = (...more: string[]) => ['dead-letters', 'requeue', '--url', url, '--file', ...more]
    await writeFile(file, [...lines, 'no json'].join('\n'))
    const wrong = await runCli(requeue(file))
    expect(wrong.status).toBe(1)
    const [, part, first] =
      /line (\d+): it is not JSON\. \(Line 1 here is line (\d+) of/.exec(wrong.stderr) ?? []
    expect(Number(part) + Number(first) - 1).toBe(7001)
    await writeFile(file, Buffer.from([...lines, 'M\xfcller'].join('\n'), 'latin1'))
    expect((await runCli(requeue(file))).stderr).toContain('not UTF-8 at line 7001, column 2')
    expect(pipeline.status().totals.delivered).toBe(0)

    await writeFile(file, lines.join('\n'))
    const stdin = lines.slice(0, 10).join('\n')
    expect((await runCli(requeue('-'), { stdin })).stdout).toBe(
      '10 payloads will be sent to the ingestion API.\n',
    )
    const dry = await runCli(requeue(file, '--dry-run'))
    expect(dry.stdout).toMatch(/^6990 payloads would be sent.*\n  10 .* skipped: already/)
    expect((await runCli(requeue(file))).stdout).toMatch(/^6990 payloads will be sent/)
    await pipeline.until(() => pipeline.status().totals.delivered === 7000)
    expect((await runCli(requeue(file))).stdout).toBe(
      '0 payloads will be sent to the ingestion API.\n  7000 payloads skipped: already delivered, by the ledger\n',
    )
    expect(pipeline.sandbox.stats()).toMatchObject({ distinctPayloadIds: 7000, duplicatesAcrossBatches: 0 })
  })
})

describe('where no daemon runs', () => {
  async function resting() {
    const folder = await newFolder()
    const world = await openSpoolWorld({ path: join(folder, 'spool') })
    await world.spool.exchange(exchangeOf({ deadLetters: [refusedPayload('a'), refusedMessage('one')] }))
    await world.spool.close()
    const config = join(folder, 'gateway.yaml')
    await writeFile(config, 'spool: { path: ./spool }\nops: { listen: "127.0.0.1:1" }\n')
    return { world, config, path: join(folder, 'spool') }
  }

  test('list, show and export report a spool that is in use or missing', async () => {
    const { config, path } = await resting()
    await useElsewhere(path)
    for (const argv of [
      ['list', '--config', config],
      ['show', 'f'.repeat(32), '--path', path],
      ['export', '--config', config],
    ])
      expect((await runCli(['dead-letters', ...argv])).stderr).toMatch(/^SPOOL_LOCKED/)
  })
})
