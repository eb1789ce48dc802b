import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { isoTimes } from '../../../src/std/iso-times.ts'
import type { DaemonControl } from '../../../src/ops/types.ts'
import { openDeadLettersWorld, refusedPayload, telemetryOf } from '../../support/dead-letters-world.ts'
import { get, opsWorld, send } from '../../support/ops-world.ts'

const unexpectedCall = () => Promise.reject(new Error('unexpected call'))
const control: DaemonControl = {
  reload: unexpectedCall,
  remap: unexpectedCall,
  mute: () => 0,
  snapshotsFolder: '/var/lib/gateway/snapshots',
  forget: unexpectedCall,
  check: unexpectedCall,
  probe: unexpectedCall,
}

async function world() {
  const letters = await openDeadLettersWorld()
  const ops = opsWorld()
  await ops.ops.start()
  ops.ops.attach({ control, deadLetters: letters.operations })
  const [url, socket] = [ops.ops.url() ?? '', ops.ops.control() ?? '']
  return {
    ...letters,
    url,
    socket,
    post: (path: string, init: RequestInit = {}) =>
      get(socket, `/control/dead-letters/${path}`, { method: 'POST', ...init }),
    [Symbol.asyncDispose]: () => ops[Symbol.asyncDispose](),
  }
}

/** Sends a request whose headers fetch would not let us choose. */
function rawPost(
  url: string,
  path: string,
  headers: Record<string, string>,
  body: string,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const takesBody = (path: string) => /^(edit|import)/.test(path)

describe('dead letters over HTTP', () => {
  test('are listed with GET, by the parameters given', async () => {
    await using ops = await world()
    await ops.add(refusedPayload('a'), refusedPayload('b'))
    const list = async (query: string) =>
      JSON.parse((await get(ops.url, `/dead-letters?${query}`)).text) as unknown
    expect(await list('device=b')).toMatchObject({ scanned: 1, deadLetters: [{ device: 'b' }] })
    expect(await list('limit=1')).toMatchObject({ scanned: 2, deadLetters: [{ device: 'a' }] })
    expect((await get(ops.url, '/dead-letters?stage=other')).status).toBe(400)
  })

  test('are shown whole on the control socket only', async () => {
    await using ops = await world()
    await ops.add(refusedPayload('a'))
    const id = await ops.idOf('a')
    const shown = await ops.post(`show?id=${id}`)
    expect(JSON.parse(shown.text)).toEqual({ id, deadLetter: isoTimes(refusedPayload('a')) })
    expect((await get(ops.url, `/control/dead-letters/show?id=${id}`)).status).toBe(405)
    expect((await ops.post('show?id=nothing')).status).toBe(404)
  })

  test.each(['show?id=1', 'requeue?all=1', 'export?all=1', 'purge?all=1&yes=1', 'edit?id=1', 'import'])(
    '%s is refused over TCP',
    async (path) => {
      await using ops = await world()
      await ops.add(refusedPayload('a'))
      for (const headers of [
        {},
        { origin: 'http://example.org' },
        { host: 'example.org' },
        { 'x-forwarded-for': '192.0.2.1' },
      ] as Record<string, string>[])
        expect(
          await rawPost(ops.url, `/control/dead-letters/${path}`, headers, takesBody(path) ? '{}' : ''),
        ).toBe(403)
      expect(await ops.left()).toEqual(['a'])
    },
  )

  test('without a selection nothing is selected', async () => {
    await using ops = await world()
    await ops.add(refusedPayload('a'))
    for (const path of ['requeue', 'purge?yes=1', 'export', 'requeue?what=1', 'purge?since=today&yes=1'])
      expect((await ops.post(path)).status).toBe(400)
    expect(await ops.left()).toEqual(['a'])
  })

  test('a purge without yes reports what it would delete', async () => {
    await using ops = await world()
    await ops.add(refusedPayload('a'))
    expect(JSON.parse((await ops.post('purge?all=1')).text)).toMatchObject({ dryRun: true, deadLetters: 1 })
    expect(await ops.left()).toEqual(['a'])
  })

  test('an export is streamed, and ends when the client closes it', async () => {
    await using ops = await world()
    await ops.add(...Array.from({ length: 50 }, (_, n) => refusedPayload(`truck-${n}`)))
    const { text, headers } = await ops.post('export?all=1')
    expect(headers.get('content-type')).toMatch(/ndjson/)
    expect(text.trimEnd().split('\n')).toHaveLength(50)
    const aborted = new AbortController()
    const response = await send(ops.socket, '/control/dead-letters/export?all=1', {
      method: 'POST',
      signal: aborted.signal,
    })
    aborted.abort()
    await expect(response.text()).rejects.toThrow()
    expect((await get(ops.url, '/healthz')).status).toBe(200)
  })

  test('an edit and an import have a body; an invalid one is refused with 422, a large one with 413', async () => {
    await using ops = await world()
    await ops.add(refusedPayload('a'))
    const id = await ops.idOf('a')
    const unfit = await ops.post(`edit?id=${id}`, { body: '{}' })
    expect([unfit.status, JSON.parse(unfit.text)]).toMatchObject([422, { code: 'DEAD_LETTER_INVALID' }])
    expect((await ops.post('edit?id=gone', { body: '{}' })).status).toBe(422)
    const body = JSON.stringify(telemetryOf('a'))
    expect((await ops.post(`edit?id=${id}`, { body })).status).toBe(200)
    const line = JSON.stringify({ kind: 'payload', provider: 'default', payload: telemetryOf('b') })
    expect(JSON.parse((await ops.post('import', { body: line })).text)).toMatchObject({ payloads: 1 })
    expect(await ops.sent()).toEqual([telemetryOf('a'), telemetryOf('b')])
    const large = await ops.post('import', { body: 'x'.repeat(9 * 1024 ** 2) }).catch(() => ({ status: 413 }))
    expect(large.status).toBe(413)
    expect((await ops.post('requeue?all=1', { body: 'x' })).status).toBe(413)
  })

  test('an unknown name is not found', async () => {
    await using ops = await world()
    for (const path of ['', 'other', 'show/more']) expect((await ops.post(path)).status).toBe(404)
  })
})
