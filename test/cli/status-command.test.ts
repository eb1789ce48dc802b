import type { RequestListener } from 'node:http'
import { stateSamples } from '../support/event-samples.ts'
import { describe, expect, test } from 'vitest'
import type { ProviderName } from '../../src/domain/ids.ts'
import {
  ingestCounters,
  keptOutput,
  lane,
  opsWorld,
  provider,
  spoolTotals,
  stages,
} from '../support/ops-world.ts'
import { runCommandLine } from '../../src/cli/cli.ts'
import { commandIo, runCli } from '../support/cli-world.ts'
import { serveHttp } from '../support/http-server.ts'
import { eventually } from '../support/eventually.ts'

/** The least that passes for a status. */
const fit = '{"version":"1","verdict":"ok","totals":{},"spool":{},"providers":[],"lanes":[],"conditions":[]}'

describe('status', () => {
  test('prints problems first, then providers, lanes and totals', async () => {
    await using world = opsWorld()
    world.ops.attach(
      stages({
        ingest: ingestCounters({ received: 12, acked: 11 }),
        lanes: [lane(1, { pending: 5, pendingBytes: 2048, oldestAt: 1_750_000_000_000 })],
        providers: [provider('default', { ratePerS: 2 })],
        totals: spoolTotals({ payloads: 9, openBytes: 2048 }),
        states: [
          {
            ...stateSamples.ENDPOINT_UNAVAILABLE,
            provider: 'default' as ProviderName,
            why: 'HTTP 500 \u001b[2J.',
          },
        ],
      }),
    )
    await world.ops.start()
    await world.ops.ready()
    const { status, stdout, stderr } = await runCli(['status', '--url', world.ops.url() ?? ''])
    expect([status, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^NOT DELIVERING: Cannot deliver/)
    expect(stdout).toContain('telemetry gateway 1.2.3, ready')
    expect(stdout).toMatch(
      /ERROR ENDPOINT_UNAVAILABLE \[default\], began just now, \d+ times, last just now$/m,
    )
    expect(stdout).toMatch(/^1 +default +live +5 +0 +0 +2\.0 KiB/m)
    expect(stdout).toContain('12 received, 11 acknowledged')
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  })

  test('prints the JSON of the daemon with --json', async () => {
    await using world = opsWorld()
    await world.ops.start()
    const { status, stdout } = await runCli(['status', '--json', '--url', `${world.ops.url()}/`])
    expect(status).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ version: '1.2.3', ready: false, verdict: 'not_receiving' })
    await world.ops.ready()
    expect((await runCli(['status', '--url', world.ops.url() ?? ''])).status).toBe(0)
  })

  test('fits a terminal, and has no colour and no cursor movement in a pipe', async () => {
    await using world = opsWorld()
    const names = ['a-provider-with-a-long-name', 'another-provider-with-a-long-name'] as ProviderName[]
    world.ops.attach(stages({ providers: names.map((name) => provider(name, {})) }))
    await world.ops.start()
    await world.ops.ready()
    const shown = keptOutput()
    const terminal = Object.assign(shown.stream, { isTTY: true, columns: 72 })
    await runCommandLine(['status', '--url', world.ops.url() ?? ''], commandIo({ stdout: terminal }))
    const lines = shown.text().split('\n')
    const table = lines.slice(lines.findIndex((line) => line.startsWith('provider ')))
    const rows = table.slice(0, table.indexOf(''))
    expect(rows.length).toBeGreaterThan(2)
    for (const line of rows) expect(line.length).toBeLessThanOrEqual(72)
    const piped = await runCli(['status', '--url', world.ops.url() ?? ''])
    expect(piped.stdout).not.toContain('\u001b')
    expect(Math.max(...piped.stdout.split('\n').map(({ length }) => length))).toBeGreaterThan(72)
  })

  test.each([
    { columns: 80, rows: 24, last: /^[1-9]\d* more lines: telemetry-gateway status$/ },
    { columns: 50, rows: 12, last: /^[1-9]\d* more lines: telemetry-gateway status$/ },
    { columns: 200, rows: 100, last: /^spool / },
  ])(
    '--watch on $columns x $rows: one screen with the verdict, every problem, and what is left out',
    async ({ last, ...size }) => {
      await using world = opsWorld()
      const why = `HTTP 500, ${'a long cause '.repeat(12)}.`
      world.ops.attach(
        stages({
          providers: ['a', 'b', 'c', 'd'].map((name) => provider(name, {})),
          states: (['a', 'b', 'c'] as ProviderName[]).map((name) => ({
            ...stateSamples.ENDPOINT_UNAVAILABLE,
            provider: name,
            why,
          })),
        }),
      )
      await world.ops.start()
      await world.ops.ready()
      const stop = new AbortController()
      const shown = keptOutput()
      const io = commandIo({
        stdout: Object.assign(shown.stream, { isTTY: true, ...size }),
        stop: stop.signal,
      })
      const argv = ['status', '--url', world.ops.url() ?? '', '--watch', '500ms']
      const watched = runCommandLine(argv, io)
      await eventually(() => shown.text().includes('\n'))
      stop.abort()
      await watched
      const [, screen = ''] = shown.text().split('\u001b[H\u001b[J')
      const rows = screen.split('\n')
      // The cursor is in the last row.
      expect(rows.length).toBeLessThanOrEqual(size.rows)
      expect(Math.max(...rows.map(({ length }) => length))).toBeLessThan(size.columns)
      expect(rows[0]).toMatch(/^DEGRADED: /)
      for (const name of ['a', 'b', 'c']) expect(screen).toContain(`[${name}]`)
      expect(rows.at(-2)).toMatch(last)
    },
  )

  test('--watch shows it again until it is stopped, also while no daemon answers', async () => {
    await using world = opsWorld()
    await world.ops.start()
    await world.ops.ready()
    const stop = new AbortController()
    let shown = 0
    const url = await serveHttp((_, response) => {
      shown += 1
      if (shown === 3) stop.abort()
      if (shown === 2) response.end('no JSON')
      else response.end(fit)
    })
    const json = await runCli(['status', '--watch', '500ms', '--json', '--url', url], {
      stop: stop.signal,
    })
    expect(
      json.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { version: string }).version)[0],
    ).toBe('1')
    expect(json.stderr).toMatch(/^\{"error":\{"code":"DAEMON_UNREACHABLE"/)
  })

  test.each<[string, RequestListener]>([
    ['something else', (_, response) => response.end('{"hello":1}')],
    ['not JSON', (_, response) => response.end('<html>')],
    ['an HTTP error', (_, response) => response.writeHead(500).end()],
    ['a redirect', (_, response) => response.writeHead(302, { location: 'http://192.0.2.1/' }).end()],
    ['too long', (_, response) => void response.end(fit + ' '.repeat(65 * 1024 * 1024))],
    ['cut off', (request) => void request.socket.destroy()],
  ])('reports an answer that is %s', async (_, listener) => {
    const url = await serveHttp(listener)
    const { status, stderr } = await runCli(['status', '--json', '--url', url])
    expect(status).toBe(1)
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'DAEMON_UNREACHABLE' } })
  })
})
