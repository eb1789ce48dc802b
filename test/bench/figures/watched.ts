// watched.ts: what ten browsers that watch the page cost at full ingest from 5,000 devices: runs with and without them,
// in turn, on one daemon. A browser has the events open and reads its view again every 5 seconds, as the script of the
// page does.

import { setTimeout as wait } from 'node:timers/promises'
import { figureOf, median, rounded, runLoad } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { startWithSink } from '../gateway.ts'
import { endToEnd } from './throughput.ts'

const connections = 16
const devicesEach = 313
const window = 64
const targetShare = 0.95
const everyMs = 5000

/** The views of ten people. */
const views = [
  ...Array.from({ length: 5 }, () => '/'),
  ...Array.from({ length: 3 }, () => '/page/devices'),
  '/page/map',
  '/page/dead-letters',
]

type Run = { ackedPerS: number; usEach: number }

export async function measureWatched(options: BenchOptions): Promise<Figure[]> {
  const { scale, pairs } = options
  const messages = Math.max(50_000, Math.round(600_000 * scale))
  await using started = await startWithSink(options)
  const { gateway } = started
  const load = () => runLoad({ port: gateway.mqttPort, messages, connections, window, devices: devicesEach })
  const run = (): Promise<Run> => endToEnd(started, messages, load)
  await run()
  const alone: Run[] = []
  const watched: Run[] = []
  let viewsRead = 0
  for (let pair = 0; pair < pairs; pair += 1) {
    alone.push(await run())
    const browsers = watch(gateway.url)
    watched.push(await run())
    viewsRead += await browsers.end()
  }
  const value =
    median(watched.map(({ ackedPerS }) => ackedPerS)) / median(alone.map(({ ackedPerS }) => ackedPerS))
  const ratesOf = (runs: readonly Run[]) => runs.map(({ ackedPerS }) => Math.round(ackedPerS))
  const cpuOf = (runs: readonly Run[]) => runs.map(({ usEach }) => rounded(usEach, 2))
  return [
    figureOf({
      figure: 'watched_16',
      value,
      unit: 'share of the rate without browsers',
      atLeast: targetShare,
      detail: {
        messages,
        devices: connections * devicesEach,
        browsers: views.length,
        viewsRead,
        ackedPerS: { alone: ratesOf(alone), watched: ratesOf(watched) },
        cpuUsEach: { alone: cpuOf(alone), watched: cpuOf(watched) },
      },
    }),
  ]
}

/** `end` gives how many views were read; it rejects where an answer was not 200. */
function watch(url: string): { end(): Promise<number> } {
  const closing = new AbortController()
  const { signal } = closing
  let count = 0
  const ended = Promise.all(
    views.map(async (view, index) => {
      const events = await fetch(`${url}/events`, { headers: { accept: 'text/event-stream' }, signal })
      if (events.status !== 200) throw new Error(`/events answered ${events.status}`)
      await Promise.all([drain(events), readView(view, (index * everyMs) / views.length)])
    }),
  )
  // Reported by end().
  ended.catch(() => undefined)

  async function drain(events: Response): Promise<void> {
    try {
      await events.body?.pipeTo(new WritableStream(), { signal })
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async function readView(view: string, delayMs: number): Promise<void> {
    try {
      await wait(delayMs, undefined, { signal })
      for (;;) {
        const answer = await fetch(url + view, { headers: { accept: 'text/html' }, signal })
        await answer.arrayBuffer()
        if (answer.status !== 200) throw new Error(`${view} answered ${answer.status}`)
        count += 1
        await wait(everyMs, undefined, { signal })
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  return {
    async end() {
      closing.abort()
      await ended
      return count
    },
  }
}
