// http-steps.ts: requests to the ops port, and what their answers must be, as the steps of step-cases.ts.
//
// In texts, <url>, <host> and <port> are those of the ops port, <spool> is the encoded path of the spool, <name> is the cookie of a browser that logged in, <token of name> the
// token of its session.

import { expect, onTestFinished } from 'vitest'
import type { OpsConfig } from '../../src/ops/config.ts'
import { costMin, hashPassword } from '../../src/std/passwords/passwords.ts'
import { Secret } from '../../src/std/secret.ts'
import { startAskedControl } from './asked-control.ts'
import { get, opsConfig, opsWorld } from './ops-world.ts'
import { exchange, rawRequest } from './raw-http.ts'

type Right = 'read' | 'change'

/** Users by their names, each with the password "right". */
export type HttpGiven = (Partial<Omit<OpsConfig, 'users'>> & { users?: Record<string, Right[]> }) | undefined

type Ask = {
  /** The same is asked at each of several. */
  path: string | string[]
  method?: string
  headers?: Record<string, string>
  /** A user, with its password behind a colon where that is not "right". */
  as?: string
  /** A browser that logged in. */
  by?: string
  form?: Record<string, string>
  body?: string
  /** On the control socket. */
  socket?: boolean
  status?: number
  has?: object
  /** Headers that the answer does not have. */
  lacks?: string[]
  json?: object
  text?: string
}

export type HttpWorld = Awaited<ReturnType<typeof startHttp>>

const hash = await hashPassword('right', costMin)

export function userOf(name: string, rights: Right[], password_hash = hash) {
  return { name, password_hash: new Secret(password_hash), rights }
}

export function usersOf(users: Record<string, Right[]>) {
  return Object.entries(users).map(([name, rights]) => userOf(name, rights))
}

export async function startHttp({ users = {}, ...more }: NonNullable<HttpGiven> = {}) {
  const made = opsWorld({ ops: opsConfig(undefined, { ...more, users: usersOf(users) }) })
  onTestFinished(() => made[Symbol.asyncDispose]())
  const asked = await startAskedControl(made)
  const url = made.ops.url() ?? ''
  const names = new Map([
    ['url', url],
    ['host', new URL(url).host],
    ['port', new URL(url).port],
    ['spool', encodeURIComponent(made.folder)],
  ])
  return { ...made, asked, url, names }
}

function filled<Value>({ names }: HttpWorld, value: Value): Value {
  const text = JSON.stringify(value)?.replaceAll(/<([\w ]+)>/g, (all, name: string) => names.get(name) ?? all)
  return text === undefined ? value : (JSON.parse(text) as Value)
}

export const basic = (name: string, password = 'right') => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
})

async function ask(world: HttpWorld, one: Ask): Promise<void> {
  const { method, headers, as, by, form, body } = filled(world, {
    method: one.method ?? (one.form ? 'POST' : 'GET'),
    headers: one.headers ?? {},
    as: one.as,
    by: one.by,
    form: one.form,
    body: one.body,
  })
  const sent = {
    method,
    headers: {
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(as !== undefined && basic(...(as.split(':') as [string, string?]))),
      ...(by !== undefined && { cookie: world.names.get(by) ?? '' }),
      ...headers,
    },
    ...((body ?? form) !== undefined && { body: body ?? new URLSearchParams(form).toString() }),
  }
  for (const path of [filled(world, one.path)].flat()) {
    const answer = one.socket
      ? await get(world.ops.control(), path, sent)
      : await rawRequest(world.url, path, sent)
    const given = Object.fromEntries(
      answer.headers instanceof Headers ? answer.headers : Object.entries(answer.headers),
    ) as Record<string, unknown>
    const place = JSON.stringify([path, sent])
    if (one.status !== undefined) expect(answer.status, place).toBe(one.status)
    if (one.has !== undefined) expect(given, place).toMatchObject(one.has)
    for (const name of one.lacks ?? []) expect(given, place).not.toHaveProperty(name)
    if (one.json !== undefined) expect(JSON.parse(answer.text), place).toMatchObject(one.json)
    if (one.text !== undefined) expect(answer.text, place).toEqual(one.text)
  }
}

export const httpWords = {
  ask: async (world: HttpWorld, asks: Ask | Ask[]) => {
    for (const one of [asks].flat()) await ask(world, one)
  },
  /** Bytes as they are, and what comes until the connection ends. `answers`: how many. */
  bytes: async (world: HttpWorld, one: { send: string; end?: boolean; text: string; answers?: number }) => {
    const text = await exchange(world.url, filled(world, one.send), { end: one.end ?? false })
    expect(text).toEqual(one.text)
    if (one.answers !== undefined) expect(text.match(/^HTTP\/1\.1 /gm)).toHaveLength(one.answers)
  },
  /** Of these users, each in a browser of its own. */
  logIn: async ({ url, names }: HttpWorld, users: string | string[]) => {
    for (const browser of [users].flat()) {
      const [name = ''] = browser.split(' ')
      const body = new URLSearchParams({ name, password: 'right' }).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await rawRequest(url, '/login', { method: 'POST', body, headers })
      const cookie = answer.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
      names.set(browser, cookie)
      const { text } = await rawRequest(url, '/session', { headers: { cookie } })
      names.set(`token of ${browser}`, (JSON.parse(text) as { token: string }).token)
    }
  },
  /** The status of what these browsers read. */
  reads: async (world: HttpWorld, expected: Record<string, number>) => {
    for (const [by, status] of Object.entries(expected)) await ask(world, { path: '/status', by, status })
  },
  pass: ({ clock }: HttpWorld, ms: number) => clock.move(ms),
  asked: ({ asked }: HttpWorld, count: number) => expect(asked).toHaveLength(count),
  refusals: ({ output }: HttpWorld, expected: object[]) =>
    expect(output.lines().filter(({ event }) => event === 'request_refused')).toMatchObject(expected),
}
