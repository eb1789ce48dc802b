// docs/alerts.md and config/examples/alerts.yaml: the example is valid, and the checks of the signature work.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { alert, alertsConfig, receiverOf, startHttpReceiver } from '../support/alert-world.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

const page = readFileSync(new URL('../../docs/alerts.md', import.meta.url), 'utf8')
const blockOf = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? ''

type IsGenuine = (headers: object, body: string, secret: string, seen: Set<string>) => boolean

async function signedRequest() {
  const { url, requests } = await startHttpReceiver()
  const receiver = receiverOf({ type: 'webhook', url, secret: 'shared' })
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

const webhook = { type: 'webhook', name: 'a', url: 'http://x' }
const email = { type: 'email', name: 'a', host: 'x', sender: 'a@b', recipients: ['c@d'] }
const command = { type: 'command', name: 'a', command: ['/x'] }

test.each<[RegExp, object, object?]>([
  [/must be a URL that begins with http:\/\/ or https:\/\//, { ...webhook, url: 'ftp://x' }],
  [/header that the gateway does not set/, { ...webhook, headers: { Host: 'y' } }],
  [/printable ASCII/, { ...webhook, headers: { A: 'x\r\nB: y' } }],
  [/certificate as PEM/, { ...webhook, ca: 'no pem' }],
  [/Invalid option/, { ...webhook, conditions: ['NO_SUCH_CODE'] }],
  [/absolute path/, { ...command, command: ['send-sms'] }],
  [/must be unique/, command, { name: 'a', url: 'http://x' }],
  [/must be an address/, { ...email, recipients: ['a@b\r\nBcc: c@d'] }],
  [/user and password/, { ...email, user: 'u' }],
  [/without encryption/, { ...email, security: 'none', user: 'u', password: 'p' }],
])('%s: a wrong section `alerts` is refused', (message, receiver, heartbeat) => {
  const heartbeats = heartbeat === undefined ? [] : [heartbeat]
  expect(() => alertsConfig({ receivers: [receiver], heartbeats })).toThrow(message)
})
