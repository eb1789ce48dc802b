// page-world.ts: a gateway with something in every view of the page, hostile names included, and what is true
// of every view.

import { writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { costMin, hashPassword } from '../../src/std/passwords/passwords.ts'
import { configText, odometerSource } from './config-text.ts'
import { newFolder } from './folders.ts'
import { get } from './ops-world.ts'
import { messageOf, startPipeline, type Pipeline } from './pipeline-world.ts'

/** Names that try to become markup, or to hide what they are. */
export const hostileNames = [
  '<script>document.title="taken"</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  'abc\u202efdp.exe',
  '&lt;b&gt;',
  'long-'.repeat(400),
]

export const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

type Answer = { status: number; headers: Headers; text: string }

export type PageWorld = Pipeline & {
  /** As a browser asks for it. */
  view(path: string, headers?: Record<string, string>): Promise<Answer>
  send(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<Answer>
  /** The header of a session. */
  login(name: string): Promise<{ cookie: string }>
}

/** Of every user in the world. */
export const pagePassword = 'correct horse'

/** Delivered payloads, a batch that is held because of 409, dead letters, and messages in quarantine. */
export async function pageWorld({ hasUsers = false } = {}): Promise<PageWorld> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device,asset_id\ntruck-1,TR-001\ntruck-2,TR-002\n')
  const users = hasUsers ? `users: ${await usersText(folder)}` : ''
  const pipeline = await startPipeline({
    folder,
    sandbox: { repeat: 'conflict', faults: { count: 1, after_commit: { cut: 1 } } },
    config: configText({
      sources: odometerSource,
      // Full batches, however slow the machine is: one is held, and the other one delivered.
      delivery: 'batch: { max_payloads: 2, linger: 5s }, timeout: 300ms',
      ops: users,
      more: 'devices: { file: devices.csv, unknown: quarantine }',
    }),
  })
  const device = await pipeline.device('truck-1')
  let messageId = 0
  const publish = (name: string, payload: string) =>
    device.publish({ topic: `telemetry/v1/${name}`, payload, messageId: (messageId += 1) })
  for (const n of [1, 2, 3, 4]) publish('truck-1', messageOf(n))
  publish('truck-1', 'not JSON')
  publish('truck-1', '{"ts":"<script>alert(1)</script>"}')
  publish('new-truck', messageOf(5))
  for (const [index, name] of hostileNames.entries()) publish(name.replaceAll('/', '-'), messageOf(6 + index))
  await device.acked(messageId)
  // A client that names no client id: it does not speak MQTT.
  const { hostname, port } = new URL(pipeline.gateway.addresses.mqtt[0] ?? '')
  createConnection(Number(port), hostname)
    .on('error', () => undefined)
    .end('GET / HTTP/1.1\r\n\r\n')
  const conditions = () => pipeline.status().conditions.map(({ code }) => code)
  await pipeline.until(
    () =>
      conditions().includes('BATCHES_HELD') &&
      pipeline.status().totals.delivered === 2 &&
      pipeline.status().devices.refused === 1,
  )
  return withViews(pipeline)
}

/** `alice` may change, `bob` may read. */
export async function usersText(folder: string): Promise<string> {
  const hash = await hashPassword(pagePassword, costMin)
  const file = join(folder, 'passwords')
  await writeFile(file, `alice:${hash}\nbob:${hash}\n`)
  const user = (name: string, rights: string) =>
    `{ name: ${name}, password_hash: "\${file:${file}}", rights: [${rights}] }`
  return `[${user('alice', 'read, change')}, ${user('bob', 'read')}]`
}

export function withViews(pipeline: Pipeline): PageWorld {
  const url = pipeline.gateway.addresses.ops
  const accept = browserAccept
  const send: PageWorld['send'] = (path, fields, headers = {}) =>
    get(url, path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      redirect: 'manual',
      headers: { accept, ...headers },
    })
  return {
    ...pipeline,
    send,
    view: (path, headers = {}) => get(url, path, { redirect: 'manual', headers: { accept, ...headers } }),
    async login(name) {
      const { headers } = await send('/login', { name, password: pagePassword })
      return { cookie: (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '' }
    },
  }
}

const voidElements = new Set(['meta', 'link', 'input', 'br', 'img', 'hr'])

/** What makes a document well formed and safe; the content security policy would stop the rest. */
export function expectSound({ headers, text }: { headers: Headers; text: string }): void {
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; /,
  )
  expect(text).toMatch(/^<!doctype html>\s*<html lang="en">/)
  // No script and no style in the document, no handlers, no foreign hosts.
  expect(text).not.toMatch(/<script(?![^>]*\ssrc="\/page\/)|<style|\sstyle="|javascript:/i)
  expect(text).not.toMatch(/<[^>]*\son[a-z]+=(?=(?:[^"]*"[^"]*")*[^"]*>)(?![^<]*")/i)
  expect(text).not.toMatch(/(?:src|href|action)="(?:[a-z]+:)?\/\//i)
  expect(text).not.toMatch(/<script>document|<img src=x|\u202e/)
  expect(unclosedIn(text)).toEqual([])
  const links = [...text.matchAll(/<a [^>]*>([\s\S]*?)<\/a>/g)].map(([link, name = '']) => [
    link,
    shownIn(name),
  ])
  expect(links.filter(([, name]) => name === '')).toEqual([])
  const ids = [...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id)
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
  expect([...text.matchAll(/<h1[ >]/g)].length).toBe(1)
}

function shownIn(markup: string): string {
  return markup.replaceAll(/<[^>]*>/g, '').trim()
}

/** Elements that are not closed in the order in which they were opened. */
function unclosedIn(text: string): string[] {
  const open: string[] = []
  for (const [, slash, name = '', rest = ''] of text.matchAll(
    /<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/gi,
  )) {
    if (voidElements.has(name) || rest.endsWith('/')) continue
    if (slash !== '/') open.push(name)
    else if (open.pop() !== name) return [`</${name}>`]
  }
  return open
}
