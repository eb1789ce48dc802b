import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../../../src/std/secret.ts'
import { costMin, hashPassword } from '../../../../src/std/passwords/passwords.ts'
import type { OpsConfig } from '../../../../src/ops/config.ts'
import { startAskedControl } from '../../../support/asked-control.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { basic, httpWords, startHttp, userOf, usersOf } from '../../../support/http-steps.ts'
import { opsConfig, opsWorld } from '../../../support/ops-world.ts'
import { rawRequest as send } from '../../../support/raw-http.ts'
import { stepCases } from '../../../support/step-cases.ts'

stepCases(import.meta.filename, startHttp, httpWords)

async function world(more: Partial<OpsConfig> = {}) {
  const made = opsWorld({ ops: opsConfig(undefined, { users, ...more }) })
  const asked = await startAskedControl(made)
  return Object.assign(made, { url: made.ops.url(), asked })
}

const hash = await hashPassword('right', costMin)
const users = [
  userOf('prometheus', ['read'], `other:${hash}\nprometheus:${hash}\n`),
  ...usersOf({ alice: ['read', 'change'] }),
]

function withTls() {
  const authority = createAuthority()
  const { cert, key } = authority.issue()
  return { ca: authority.ca, tls: { cert, key: new Secret(key) } }
}

describe('with users', () => {
  test('a password may stand in a file with those of others', async () => {
    await using ops = await world()
    expect((await send(ops.url, '/status', { headers: basic('prometheus') })).status).toBe(200)
    expect((await send(ops.url, '/status', { headers: basic('other') })).status).toBe(401)
  })

  test('wrong passwords are answered later and later, are reported, and do not delay right ones', async () => {
    await using ops = await world()
    const tookMs = async (headers: Record<string, string>) => {
      const before = performance.now()
      await send(ops.url, '/status', { headers })
      return performance.now() - before
    }
    for (let guess = 0; guess < 2; guess += 1) await tookMs(basic('alice', `guess ${guess}`))
    expect(await tookMs(basic('alice', 'guess'))).toBeGreaterThan(390)
    const right = await send(ops.url, '/status', { headers: basic('alice') })
    expect(right.status).toBe(200)
    expect(await tookMs(basic('alice'))).toBeLessThan(500)
    const refused = () =>
      ops.output
        .lines()
        .filter(({ event, reason }) => event === 'request_refused' && reason === 'bad_password')
    expect(refused()).toMatchObject([
      { reason: 'bad_password', count: 1, user: 'alice', address: '127.0.0.1' },
    ])
    ops.clock.move(61_000)
    await Promise.all(
      Array.from({ length: 3 }, (_, n) => send(ops.url, '/status', { headers: basic(`u${n}`) })),
    )
    expect(refused()).toMatchObject([{ count: 1 }, { count: 3 }])
    const metrics = (await send(ops.url, '/metrics', { headers: basic('alice') })).text
    expect(metrics).toMatch(/gateway_http_refused_total\{reason="bad_password"\} \d+/)
  })

  test('guesses at the same time do not all get a check', async () => {
    await using ops = await world()
    const guesses = Array.from({ length: 20 }, (_, n) =>
      send(ops.url, '/status', { headers: basic('alice', `${n}`) }),
    )
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10)
    expect(statuses.filter((status) => status === 401).length).toBeGreaterThanOrEqual(2)
  })

  test('changes are made over TLS, in the name of the user', async () => {
    const { ca, tls } = withTls()
    await using ops = await world({ tls })
    expect(ops.url).toMatch(/^https:/)
    const headers = basic('alice')
    const answer = await send(ops.url, '/control/reload', { method: 'POST', headers, ca })
    expect(answer.status).toBe(200)
    const audit = await send(ops.url, '/audit', { headers, ca })
    expect(JSON.parse(audit.text)).toMatchObject({
      changes: [
        { change: 'reload', by: { via: 'tcp', user: 'alice', address: '127.0.0.1' }, outcome: 'done' },
      ],
    })
  })

  test('a failed TLS handshake is counted by its reason', async () => {
    const { ca, tls } = withTls()
    await using ops = await world({ tls })
    const plain = connect(Number(new URL(ops.url ?? '').port), '127.0.0.1')
    plain.on('error', () => plain.destroy())
    plain.write('GET / HTTP/1.1\r\n\r\n')
    await new Promise<void>((resolve) => plain.once('close', () => resolve()))
    const headers = basic('alice')
    const metrics = (await send(ops.url, '/metrics', { headers, ca })).text
    expect(metrics).toContain('gateway_http_refused_total{reason="http_on_tls_port"} 1')
  })
})
