// docs/alerts.md and config/examples/alerts.yaml: the example is valid, and the checks of the signature work.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { receiverDepsOf } from '../../src/alerts/alerts.ts'
import { createReceiver } from '../../src/alerts/receivers/receivers.ts'
import { systemClock } from '../../src/std/clock.ts'
import { alert, alertsConfig, startHttpReceiver } from '../support/alert-world.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

const page = readFileSync(new URL('../../docs/alerts.md', import.meta.url), 'utf8')
const blockOf = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? ''

type IsGenuine = (headers: object, body: string, secret: string, seen: Set<string>) => boolean

async function signedRequest() {
  const { url, requests } = await startHttpReceiver()
  const alerts = alertsConfig({ receivers: [{ type: 'webhook', name: 'central', url, secret: 'shared' }] })
  const deps = receiverDepsOf(
    { clock: systemClock, env: {}, clockOffsetMs: () => null },
    { alerts, proxy: { from: 'none' } },
  )
  const receiver = createReceiver(deps, alerts.receivers[0]!)
  expect((await receiver.send(alert(), AbortSignal.timeout(5000))).kind).toBe('sent')
  return requests[0]!
}

describe('the documentation of alerts', () => {
  test('has a check in JavaScript that accepts a request once, and no changed, old or foreign one', async () => {
    const path = join(await newFolder(), 'check.mjs')
    await writeFile(path, blockOf('js'))
    const { isGenuine } = (await import(pathToFileURL(path).href)) as { isGenuine: IsGenuine }
    const { headers, body } = await signedRequest()
    const old = { ...headers, 'gateway-timestamp': String(Number(headers['gateway-timestamp']) - 301) }
    expect(isGenuine(headers, `${body} `, 'shared', new Set())).toBe(false)
    expect(isGenuine(headers, body, 'other', new Set())).toBe(false)
    expect(isGenuine(old, body, 'shared', new Set())).toBe(false)
    expect(isGenuine({}, body, 'shared', new Set())).toBe(false)
    const seen = new Set<string>()
    expect(isGenuine(headers, body, 'shared', seen)).toBe(true)
    expect(isGenuine(headers, body, 'shared', seen)).toBe(false)
  })

  test('has a check in Python that accepts the same request', async () => {
    const { headers, body } = await signedRequest()
    const text = `${blockOf('python')}
import json, sys
headers, body = json.load(sys.stdin)
print(is_genuine(headers, body.encode(), b"shared"), is_genuine(headers, body.encode(), b"other"))
`
    const output = execFileSync('/usr/bin/python3', ['-c', text], { input: JSON.stringify([headers, body]) })
    expect(output.toString()).toBe('True False\n')
  })

  test('has an example that `check` accepts, and shows without its secrets', async () => {
    const path = join(await newFolder(), 'alerts.yaml')
    await writeFile(path, readFileSync(new URL('../../config/examples/alerts.yaml', import.meta.url)))
    const env = {
      SMTP_PASSWORD: 'marked-1',
      CHAT_URL: 'https://chat.example.com/hooks/marked-2',
      ALERT_SECRET: 'marked-3',
      ALERT_AUTHORIZATION: 'Bearer marked-4',
      MONITOR_URL: 'https://hc.example.com/ping/marked-5',
    }
    const { status, stdout, stderr } = await runCli(['check', '--config', path], { env })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(stdout).toMatch(/chat: webhook to https:\/\/chat\.example\.com\/\*\*\*, from warning/)
    expect(stdout).toMatch(
      /duty: email to smtp\.example\.com:587 to duty@depot\.example, office@depot\.example, from error/,
    )
    expect(stdout).toMatch(/monitor: heartbeat to https:\/\/hc\.example\.com\/\*\*\*\n/)
    expect(stdout).not.toContain('marked')
  })
})

describe('a wrong section `alerts`', () => {
  test.each([
    [
      { receivers: [{ type: 'webhook', name: 'a', url: 'ftp://x' }] },
      /must be a URL that begins with http:\/\/ or https:\/\//,
    ],
    [
      { receivers: [{ type: 'webhook', name: 'a', url: 'http://x', headers: { Host: 'y' } }] },
      /header that the gateway does not set/,
    ],
    [
      { receivers: [{ type: 'webhook', name: 'a', url: 'http://x', headers: { A: 'x\r\nB: y' } }] },
      /printable ASCII/,
    ],
    [{ receivers: [{ type: 'webhook', name: 'a', url: 'http://x', ca: 'no pem' }] }, /certificate as PEM/],
    [
      { receivers: [{ type: 'webhook', name: 'a', url: 'http://x', conditions: ['NO_SUCH_CODE'] }] },
      /Invalid option/,
    ],
    [{ receivers: [{ type: 'command', name: 'a', command: ['send-sms'] }] }, /absolute path/],
    [
      {
        receivers: [{ type: 'command', name: 'a', command: ['/x'] }],
        heartbeats: [{ name: 'a', url: 'http://x' }],
      },
      /must be unique/,
    ],
    [
      {
        receivers: [{ type: 'email', name: 'a', host: 'x', sender: 'a@b', recipients: ['a@b\r\nBcc: c@d'] }],
      },
      /must be an address/,
    ],
    [
      { receivers: [{ type: 'email', name: 'a', host: 'x', sender: 'a@b', recipients: ['c@d'], user: 'u' }] },
      /user and password/,
    ],
    [
      {
        receivers: [
          {
            type: 'email',
            name: 'a',
            host: 'x',
            security: 'none',
            user: 'u',
            password: 'p',
            sender: 'a@b',
            recipients: ['c@d'],
          },
        ],
      },
      /without encryption/,
    ],
  ])('%j is refused', (written, message) => {
    expect(() => alertsConfig(written)).toThrow(message)
  })
})
