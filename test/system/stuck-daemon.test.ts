// A daemon whose event loop is stuck shows nothing by itself: commands say so, and the next run after the watchdog has
// ended it has a condition.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { spawnCommand, startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'

test('a stuck daemon gives no answer, and the run after the watchdog says that the last one ended', async () => {
  const { url } = await startSandbox()
  const folder = await newFolder()
  const config = await writeDaemonConfig(folder, url)
  const daemon = await startSpawnedDaemon(config)
  process.kill(daemon.pid, 'SIGSTOP')
  onTestFinished(() => void daemon.kill())
  // Also of commands whose work has no limit.
  const commands = [['status'], ['probe'], ['dead-letters', 'list'], ['tap']]
  const answers = await Promise.all(
    commands.map((words) => spawnCommand([...words, '--url', daemon.url]).ended),
  )
  for (const answer of answers) {
    expect(answer).toMatch(
      /^exit 1\nDAEMON_UNREACHABLE\n.* accepts the connection and gives no answer within 5 s\.\n/,
    )
    expect(answer).toMatch(/event loop is busy[\s\S]*systemctl status/)
  }
  // As systemd and the unit do where the watchdog is not fed.
  process.kill(daemon.pid, 'SIGABRT')
  process.kill(daemon.pid, 'SIGCONT')
  await daemon.ended
  await writeFile(join(folder, 'spool', 'last-exit'), 'ABRT\n')
  const next = await startSpawnedDaemon(config)
  type Shown = { verdict: string; conditions: { code: string; severity: string; what: string }[] }
  const statusNow = async () => (await (await fetch(`${next.url}/status`)).json()) as Shown
  const ofLastRun = async () =>
    (await statusNow()).conditions.find(({ code }) => code === 'LAST_RUN_ENDED_UNCLEAN')
  await eventually(async () => (await ofLastRun()) !== undefined)
  const found = await ofLastRun()
  expect(found?.severity).toBe('warning')
  expect(found?.what).toMatch(/It wrote last at 20.*, and nothing ran for .*s or a little less\.$/)
  expect((await statusNow()).verdict).toBe('degraded')
  const metrics = await (await fetch(`${next.url}/metrics`)).text()
  expect(metrics).toContain('gateway_condition{code="LAST_RUN_ENDED_UNCLEAN",severity="warning"} 1')
  await next.kill()
})
