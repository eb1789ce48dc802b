// Logging in with a real browser, and what a real page of another site can do: Debian's chromium. On a
// machine without it, all of it is skipped, with a message.

import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium, type Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { costMin, hashPassword } from '../../src/std/passwords/passwords.ts'
import { startAskedControl } from '../support/asked-control.ts'
import { get, opsConfig, opsWorld } from '../support/ops-world.ts'

const executablePath = '/usr/bin/chromium'
if (!existsSync(executablePath))
  process.stderr.write('Logins are not tried in a browser: chromium is not installed\n')

async function gateway() {
  const hash = await hashPassword('right', costMin)
  const users = [
    { name: 'alice', password_hash: new Secret(hash), rights: ['read' as const, 'change' as const] },
  ]
  const made = opsWorld({ ops: opsConfig({ host: '127.0.0.1', port: 0 }, { users }) })
  onTestFinished(() => made[Symbol.asyncDispose]())
  const asked = await startAskedControl(made)
  return { url: made.ops.url() ?? '', asked }
}

/** On another host name: another site. It lets the browser send what `html` says. */
async function otherSite(html: string): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(html)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

let browser: Browser

beforeAll(async () => {
  if (!existsSync(executablePath)) return
  const args = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
  ]
  browser = await chromium.launch({ executablePath, args })
})
afterAll(() => browser?.close())

async function browserPage() {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  return context.newPage()
}

describe.skipIf(!existsSync(executablePath))('a browser', () => {
  test('logs in, follows a link of another site with its session, changes something, and logs out', async () => {
    const { url, asked } = await gateway()
    const page = await browserPage()
    await page.goto(`${url}/?`)
    expect(new URL(page.url()).pathname).toBe('/login')
    await page.fill('input[name=name]', 'alice')
    await page.fill('input[name=password]', 'wrong')
    await page.click('main button')
    expect(await page.textContent('[role=alert]')).toContain('password is wrong')
    await page.fill('input[name=name]', 'alice')
    await page.fill('input[name=password]', 'right')
    await page.click('main button')
    expect(new URL(page.url()).pathname).toBe('/')
    expect(await page.evaluate('document.cookie')).toBe('')

    await page.goto(await otherSite(`<a id="link" href="${url}/">the gateway</a>`))
    await page.click('#link')
    await page.waitForURL(`${url}/`)
    expect(await page.textContent('h1')).toBe('Overview')

    const posted = await page.evaluate(async () => {
      const { token } = (await (await fetch('/session')).json()) as { token: string }
      const change = (headers: Record<string, string>) =>
        fetch('/control/reload', { method: 'POST', headers })
      return [(await change({})).status, (await change({ 'gateway-token': token })).status]
    })
    expect(posted).toEqual([403, 200])
    expect(asked).toHaveLength(1)

    await page.click('form[action="/logout"] button')
    await page.waitForURL(`${url}/login`)
    await page.goto(`${url}/`)
    expect(new URL(page.url()).pathname).toBe('/login')
  })

  test('that is logged in sends nothing that counts for a page of another site', async () => {
    const { url, asked } = await gateway()
    const page = await browserPage()
    await page.goto(`${url}/login`)
    await page.fill('input[name=name]', 'alice')
    await page.fill('input[name=password]', 'right')
    await page.click('main button')
    await page.waitForURL(`${url}/`)
    const refused = async () => {
      const headers = { authorization: `Basic ${Buffer.from('alice:right').toString('base64')}` }
      const { text } = await get(url, '/metrics', { headers })
      return Number(/gateway_http_refused_total\{reason="cross_site"\} (\d+)/.exec(text)?.[1])
    }
    expect(await refused()).toBe(0)
    const foreign = await otherSite(`
      <iframe src="${url}/"></iframe> <img src="${url}/status"> <script src="${url}/session"></script>
      <form id="form" method="post" action="${url}/control/reload"><input name="token" value="x"></form>`)
    await page.goto(foreign, { waitUntil: 'networkidle' })
    const read = await page.evaluate(async (to) => {
      const tries = [fetch(`${to}/session`, { credentials: 'include' }), fetch(`${to}/status`)]
      return (await Promise.allSettled(tries)).map(({ status }) => status)
    }, url)
    expect(read).toEqual(['rejected', 'rejected'])
    await page.evaluate('document.querySelector("form").submit()')
    await page.waitForURL(`${url}/control/reload`)
    // The frame, the image, the script, two fetches, and the form.
    expect(await refused()).toBe(6)
    expect(asked).toEqual([])
  })
})
