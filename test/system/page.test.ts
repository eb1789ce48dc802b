// The page in a browser: Debian's chromium, driven by playwright-core. Every view with real data, on a phone, in the
// dark, without scripts and in an outage; axe-core looks for what keeps people out; and one flow per question that
// a person comes with. On a machine without chromium all of it is skipped, with a message.
//
// PAGE_SHOTS=DIR writes a picture of every view, to be looked at.

import { existsSync, readFileSync } from 'node:fs'
import { appendFile, mkdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { fleetWorld } from '../support/fleet-world.ts'
import { newFolder } from '../support/folders.ts'
import { get } from '../support/ops-world.ts'
import { browserAccept, pagePassword, pageWorld, usersText } from '../support/page-world.ts'
import { messageOf, startPipeline } from '../support/pipeline-world.ts'

const executablePath = '/usr/bin/chromium'
if (!existsSync(executablePath))
  process.stderr.write('The page is not tried in a browser: chromium is not installed\n')

const require = createRequire(import.meta.url)
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const shots = process.env['PAGE_SHOTS']
let browser: Browser

beforeAll(async () => {
  if (!existsSync(executablePath)) return
  if (shots !== undefined) await mkdir(shots, { recursive: true })
  const flags = ['headless', 'no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run']
  const quiet = ['disable-background-networking', 'disable-component-update', 'disable-sync']
  browser = await chromium.launch({ executablePath, args: [...flags, ...quiet].map((flag) => `--${flag}`) })
})
afterAll(() => browser?.close())

/** A page of its own; what the browser complains about fails the test: the content security policy above all. */
async function open(url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 900 },
    baseURL: url,
    ...options,
  })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    // A view that is left ends its streams.
    if (message.type() === 'error' && !/ERR_(ABORTED|CONNECTION)|status of 40[134]/.test(message.text()))
      complaints.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) complaints.push(request.url())
  })
  return { page, complaints }
}

async function visit(page: Page, path: string): Promise<void> {
  await page.goto(path, { waitUntil: 'domcontentloaded' })
}

async function shoot(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true })
}

type Finding = { id: string; nodes: { html: string }[] }

/** What keeps people out: the rules of WCAG 2.2 AA, targets of 24 px among them, and the best practices. */
async function findingsIn(page: Page): Promise<string[]> {
  await page.evaluate(axeSource)
  const { violations } = await page.evaluate<{ violations: Finding[] }>(
    "axe.run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })",
  )
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
  )
}

type Stop = { html: string; name: string; isOutlined: boolean; isSmall: boolean }

/** What Tab reaches, one after the other; a trap would not come to an end. */
async function stopsIn(page: Page): Promise<Stop[]> {
  const cdp = await page.context().newCDPSession(page)
  const stops: Stop[] = []
  for (;;) {
    await page.keyboard.press('Tab')
    const stop = await page.evaluate<Omit<Stop, 'name'> | null>(`(() => {
      const one = document.activeElement
      if (one === document.body || one.hasAttribute('data-seen')) return null
      one.setAttribute('data-seen', '')
      const { width, height, top, bottom } = one.getBoundingClientRect()
      if (bottom <= 0 || top >= innerHeight) throw new Error('not on the screen: ' + one.outerHTML)
      const isOutlined = getComputedStyle(one).outlineStyle === 'solid'
      // A mark of the map has no room; the list of devices, below it, has the same link.
      const isSmall = !one.closest('svg') && (width < 24 || height < 23.9)
      return { html: one.outerHTML.slice(0, 120), isOutlined, isSmall }
    })()`)
    if (stop === null) return stops
    const { result } = await cdp.send('Runtime.evaluate', { expression: 'document.activeElement' })
    const { nodes } = await cdp.send('Accessibility.getPartialAXTree', {
      ...(result.objectId !== undefined && { objectId: result.objectId }),
      fetchRelatives: false,
    })
    const [{ name, role } = {}] = nodes
    stops.push({ ...stop, name: role?.value === 'generic' ? '' : String(name?.value ?? '') })
  }
}

const views = {
  overview: '/',
  day: '/?span=day',
  devices: '/page/devices',
  device: '/page/device?key=truck-1',
  'new-device': '/page/device?key=new-truck',
  map: '/page/map',
  refused: '/page/refused',
  'dead-letters': '/page/dead-letters',
  quarantine: '/page/quarantine',
  batches: '/page/batches',
  ledger: '/page/ledger',
  live: '/page/live',
  changes: '/page/changes',
  login: '/login',
  problem: '/page/device?key=nobody',
} as const

type Way = { options: BrowserContextOptions; views: readonly (keyof typeof views)[] }

/** What a way changes is the same in the views that are left out. */
const ways: Readonly<Record<string, Way>> = {
  wide: { options: {}, views: Object.keys(views) as (keyof typeof views)[] },
  dark: {
    options: { colorScheme: 'dark' },
    views: ['overview', 'device', 'map', 'dead-letters'],
  },
  phone: {
    options: { viewport: { width: 360, height: 740 }, hasTouch: true },
    views: ['overview', 'devices', 'device', 'ledger'],
  },
}

describe.skipIf(!existsSync(executablePath))('the page in a browser', { timeout: 180_000 }, () => {
  test('keeps nobody out of any view, wide, in the dark and on a phone', async () => {
    const world = await pageWorld()
    for (const [way, { options, views: shown }] of Object.entries(ways)) {
      const { page, complaints } = await open(world.gateway.addresses.ops, options)
      for (const name of shown) {
        const path = views[name]
        await visit(page, path)
        expect([path, await page.title()]).toEqual([path, expect.stringContaining(' · telemetry gateway')])
        expect([way, path, await findingsIn(page)]).toEqual([way, path, []])
        const { width } = options.viewport ?? { width: 1200 }
        const wide = await page.evaluate('document.documentElement.scrollWidth')
        expect([way, path, wide]).toEqual([way, path, width])
        await shoot(page, `${name}-${way}`)
      }
      expect(complaints).toEqual([])
    }
  })

  test('can be used with the keyboard alone: each control is reached, seen, named, and large enough', async () => {
    const world = await pageWorld({ hasUsers: true })
    const { page, complaints } = await open(world.gateway.addresses.ops)
    await visit(page, '/login')
    await page.keyboard.type('alice')
    await page.keyboard.press('Tab')
    await page.keyboard.type(pagePassword)
    await page.keyboard.press('Enter')
    await expectText(page, 'header', /alice/)
    const names = new Map<string, string[]>()
    for (const path of Object.values(views)) {
      await page.goto(path)
      const stops = await stopsIn(page)
      const wrong = stops.filter(({ name, isOutlined, isSmall }) => name === '' || !isOutlined || isSmall)
      expect([path, wrong]).toEqual([path, []])
      const controls = await page.evaluate(
        `[...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
          .filter((one) => one.checkVisibility() && one.tabIndex >= 0 && !one.hasAttribute('data-seen'))
          .map((one) => one.outerHTML.slice(0, 120))`,
      )
      expect([path, controls]).toEqual([path, []])
      names.set(
        path,
        stops.map(({ name }) => name),
      )
    }
    // Each button that several problems have says which one it is about.
    const known = names.get('/')?.filter((name) => name.startsWith('Known for 3 days')) ?? []
    expect(known.length).toBeGreaterThan(1)
    expect(new Set(known).size).toBe(known.length)
    expect(complaints).toEqual([])
  })

  test('works without scripts: verdict, plots with their values, search, commands', async () => {
    const world = await fleetWorld()
    const { page } = await open(world.gateway.addresses.ops, { javaScriptEnabled: false })
    await world.until(() => world.status().devices.silent === 1)
    await visit(page, '/')
    await expectText(page, '#verdict', /Degraded|OK/)
    expect(await page.locator('svg.lines[role=img]').count()).toBe(4)
    await page.locator('.plot summary').first().click()
    await expectText(page, '.plot table', /messages received.*\d/s)
    await shoot(page, 'overview-without-scripts')
    await page.getByRole('link', { name: /^Devices/ }).click()
    await page.getByLabel('Name, asset or client id').fill('TR-0007')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('link', { name: 'truck-7' }).click()
    await expectText(page, '.verdict', /Silent since/)
    await page.locator('summary').last().click()
    await expectText(page, 'main', /telemetry-gateway devices forget truck-7/)
    await visit(page, '/page/live?device=truck-7')
    await expectText(page, 'main', /telemetry-gateway tap --device truck-7/)
    await shoot(page, 'live-without-scripts')
  })

  test('answers: truck-7 is silent, since when and why; what did the service refuse; when is the backlog gone', async () => {
    const world = await fleetWorld()
    const { page, complaints } = await open(world.gateway.addresses.ops)
    await world.until(() => world.status().devices.silent === 1 && world.status().totals.retried > 0)

    await visit(page, '/')
    await page.getByRole('link', { name: /^Devices/ }).click()
    await expectText(page, 'table', /truck-7.*TR-0007.*silent/s)
    await page.getByLabel('Name, asset or client id').fill('tr-0007')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('link', { name: 'truck-7' }).click()
    await expectText(page, '.verdict', /Silent since .*No message for .*Its connection was lost/s)
    await expectText(page, 'main', /"odometer":1070.*As it is sent.*"id":"TR-0007".*delivered/s)
    await shoot(page, 'flow-silent')

    await page.getByRole('link', { name: 'Ledger', exact: true }).click()
    await page.getByLabel('Outcome').selectOption('retried')
    await page.getByRole('button', { name: 'Search' }).click()
    await expectText(page, 'table', /truck-5.*retried.*Validation.*The odometer is lower than before/s)
    await shoot(page, 'flow-refused')

    // The value changes by itself, without a reload.
    await page.getByRole('link', { name: 'Overview' }).click()
    await expectText(page, '#waiting', /Payloads\s*\d+.*Sent in\s*(about|less than)/s)
    await expectText(page, '#plots', /messages received\s+\d/)
    expect(await page.locator('#plots svg.lines').count()).toBe(4)
    // Also the plots, and what is open in them stays so.
    await page.locator('.plot summary').first().click()
    const lastPoint = page.locator('#plots svg.lines').first().locator('.point title').last()
    const until = (await lastPoint.textContent())!
    expect(until).toMatch(/^Until 20.*\nmessages received: \d/s)
    while ((await lastPoint.textContent()) === until) await page.waitForTimeout(200)
    expect(await page.locator('.plot table').first().isVisible()).toBe(true)
    await shoot(page, 'flow-backlog')

    await page.getByRole('link', { name: 'Live', exact: true }).click()
    await expectText(page, '#tap', /telemetry\/v1\/truck-\d+.*"assetIdentifier"/s)
    await shoot(page, 'flow-live')
    expect(complaints).toEqual([])
  })

  test('answers: accept this new device; is it us or them', async () => {
    const world = await fleetWorld()
    const { page } = await open(world.gateway.addresses.ops)
    await world.until(() => world.status().spool.quarantined === 1)
    await visit(page, '/page/quarantine')
    await page.getByRole('link', { name: 'new-truck' }).click()
    await expectText(page, 'main', /telemetry-gateway devices accept new-truck --asset new-truck/)
    const rows = await page.locator('.copy code').allTextContents()
    const row = rows.map((text) => text.split('\n')[1]).find((text) => text !== undefined)
    expect(row).toBe('new-truck,new-truck')
    await shoot(page, 'flow-new-device')
    await appendFile(world.devicesFile, `${row}\n`)
    await world.until(() => world.status().spool.quarantined === 0)
    await visit(page, '/page/device?key=new-truck')
    await expectText(page, 'main', /Asset\s*new-truck/)

    await visit(page, '/')
    await expectText(page, '#verdict', /Degraded|OK/)
    await world.outage()
    await expectText(page, '#verdict', /Not delivering.*Last message of a device\s*(now|\d+ s ago)/s)
    await expectText(page, '#verdict-word', /Not delivering/)
    await expectText(page, '#providers', /unavailable/)
    await expectText(page, '#waiting', /nothing moves/)
    expect(await findingsIn(page)).toEqual([])
    await shoot(page, 'outage-overview')
  })

  test('stays where a person is while its values change: the focus on its device, no click on what has just moved', async () => {
    const world = await pageWorld()
    const { page } = await open(world.gateway.addresses.ops)
    const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()')
    await visit(page, '/page/devices?sort=last')
    await page.getByRole('link', { name: 'truck-1', exact: true }).focus()
    await world.publish('truck-2', messageOf(40))
    await expectText(page, 'tbody tr:first-child', /truck-2/)
    expect(await focused()).toBe('truck-1')

    // A tap that was meant for what was there before the list changed.
    const isTaken = page.evaluate<boolean>(`new Promise((resolve) => {
      document.addEventListener('regions-renewed', () => setTimeout(() => {
        const first = document.querySelector('tbody a')
        const click = new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 })
        if (first.textContent.trim() === 'truck-1') resolve(first.dispatchEvent(click))
      }))
    })`)
    await world.publish('truck-1', messageOf(41))
    expect(await isTaken).toBe(false)
    expect(await focused()).toBe('truck-1')
    expect(new URL(page.url()).pathname).toBe('/page/devices')

    // The row with the focus leaves the list.
    await visit(page, '/page/devices?state=sending')
    await page.getByRole('link', { name: 'truck-2', exact: true }).focus()
    const device = await world.device('other')
    device.publish({ topic: 'telemetry/v1/truck-2', payload: 'not JSON', messageId: 1 })
    await page.getByRole('link', { name: 'truck-2', exact: true }).waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.id')).toBe('devices')
  })

  test('asks for a login, then for each change, and says who made it', async () => {
    const world = await pageWorld({ hasUsers: true })
    const { page, complaints } = await open(world.gateway.addresses.ops)
    await visit(page, '/page/dead-letters')
    await page.getByLabel('User').fill('alice')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Log in' }).click()
    await expectText(page, 'main', /The user or the password is wrong/)
    await shoot(page, 'users-login')
    await page.getByLabel('User').fill('alice')
    await page.getByLabel('Password').fill(pagePassword)
    await page.getByRole('button', { name: 'Log in' }).click()
    await expectText(page, 'header', /alice/)
    await expectText(page, 'h1', /Dead letters/)
    await shoot(page, 'users-dead-letters')
    await page.locator('table a[href^="/page/dead-letter?"]').first().click()
    await expectText(page, 'main', /Topic.*Message/s)
    expect(await findingsIn(page)).toEqual([])
    await shoot(page, 'users-dead-letter')
    // With the keyboard: over the navigation to the content.
    await page.keyboard.press('Tab')
    await expectText(page, ':focus', /Skip to the content/)
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    await page.getByRole('link', { name: 'Purge…' }).click()
    await expectText(page, 'main', /What it would do.*1 dead letter would be deleted/s)
    expect(await findingsIn(page)).toEqual([])
    await shoot(page, 'users-question')
    expect(world.status().spool.deadLetters).toBe(3)
    await page.getByRole('button', { name: 'Yes, purge' }).click()
    await expectText(page, 'h1', /done/)
    expect(world.status().spool.deadLetters).toBe(2)
    await page.getByRole('link', { name: 'All changes' }).click()
    await expectText(page, 'table', /dead-letters\/purge.*alice.*done/s)
    await shoot(page, 'users-changes')
    await visit(page, '/page/batches')
    await page.locator('table a').first().click()
    await expectText(page, 'main', /held since.*Processed\s*perhaps/s)
    await shoot(page, 'users-batch')
    await page.getByRole('button', { name: 'Log out' }).click()
    await expectText(page, 'h1', /Log in/)
    expect(complaints).toEqual([])
  })

  test('ends an outage on a phone: a login, three buttons, and no shell', async () => {
    const folder = await newFolder()
    const pipeline = await startPipeline({
      folder,
      sandbox: { faults: { count: 2, always: 401 } },
      sections: { ops: `{ listen: "127.0.0.1:0", users: ${await usersText(folder)} }` },
    })
    await pipeline.publish('truck-1', messageOf(1))
    await pipeline.until(() => pipeline.codes().includes('ENDPOINT_UNAUTHORIZED'))
    const { page, complaints } = await open(pipeline.gateway.addresses.ops, {
      ...ways['phone']?.options,
      timezoneId: 'Asia/Kolkata',
    })
    await visit(page, '/')
    await page.getByLabel('User').fill('alice')
    await page.getByLabel('Password').fill(pagePassword)
    await page.getByRole('button', { name: 'Log in' }).click()
    await expectText(page, '#conditions', /ENDPOINT_UNAUTHORIZED/)
    // Times are those of the gateway wherever the reader is, and say so.
    await expectText(page, 'footer', /State of\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?!GMT\+5:30)[A-Z]{2,}/)
    await shoot(page, 'phone-outage')
    for (const [name, sure, result] of [
      ['Try the service now…', 'Yes, probe', /default\s*available/],
      ['Reload the config…', 'Yes, reload', /The mapping is in force: 1 source/],
    ] as const) {
      await page.getByRole('link', { name }).last().click()
      expect(await findingsIn(page)).toEqual([])
      await page.getByRole('button', { name: sure }).click()
      await expectText(page, 'main', result)
      expect(await findingsIn(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      await shoot(page, `phone-${sure.slice(5)}`)
      await page.getByRole('link', { name: 'Back' }).click()
    }
    await expectText(page, '#conditions', /None/)
    await shoot(page, 'phone-after')
    expect(pipeline.status().totals.delivered).toBe(1)
    expect(complaints).toEqual([])
  })

  test('opens with 5,000 devices in a second, and shows no secret', async () => {
    const world = await fleetWorld({ trucks: 5000 })
    const { ops } = world.gateway.addresses
    await world.until(() => world.status().devices.seen > 4900)
    const { page } = await open(ops)
    for (const path of ['/page/devices', '/page/map', '/page/devices?find=tr-4999']) {
      // A machine that tests other things at the same time is slow now and then.
      const tookMs: number[] = []
      for (let tries = 0; tries < 6 && !tookMs.some((ms) => ms < 1000); tries += 1) {
        await page.goto(path)
        tookMs.push(
          await page.evaluate<number>('performance.timing.loadEventEnd - performance.timing.navigationStart'),
        )
      }
      expect([path, Math.min(...tookMs)]).toEqual([path, expect.any(Number)])
      expect(Math.min(...tookMs)).toBeLessThan(1000)
    }
    await visit(page, '/page/map')
    await shoot(page, 'fleet-map')
    await visit(page, '/page/devices')
    await shoot(page, 'fleet-devices')
    for (const path of Object.values(views)) {
      const { text } = await get(ops, path, { headers: { accept: browserAccept } })
      expect([path, text.includes(sandboxAccount.secret.reveal())]).toEqual([path, false])
    }
  })
})

/** Waits until the part has the text: it changes by itself. */
async function expectText(page: Page, selector: string, text: RegExp): Promise<void> {
  await page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: 60_000 })
}
