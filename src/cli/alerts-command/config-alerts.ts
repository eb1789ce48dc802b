// config-alerts.ts: the receivers of alerts by the config, without a daemon: for `alerts test`,
// `check --connect` and `doctor`.

import { randomUUID } from 'node:crypto'
import { systemClock } from '../../std/clock.ts'
import { checkReceivers, listReceivers, receiverDepsOf, testReceivers } from '../../alerts/alerts.ts'
import type { AlertTest } from '../../alerts/types.ts'
import { loadConfig, type Config } from '../../config/config.ts'
import { sectionProxy } from '../../delivery/config.ts'
import { readVersion } from '../terminal/package-version.ts'

export async function checkedAlerts(path: string, env: NodeJS.ProcessEnv) {
  const { config } = await loadConfig(path, { env })
  const { options, deps } = partsOf(config, env)
  const sentence = 'This is a test without a running daemon.'
  const situation = () => ({
    verdict: 'ok',
    sentence,
    isReady: true,
    isComplete: true,
    conditions: [],
    endOf: () => null,
  })
  const page = () => config.alerts.page ?? null
  const testDeps = { ...deps, newId: randomUUID, version: readVersion(), page, situation }
  return {
    alerts: config.alerts,
    testReceivers: (which: { name: string | null; signal: AbortSignal }) =>
      testReceivers(testDeps, options, which),
  }
}

/** Whether each receiver can be reached. Nothing is sent. */
export function tryReceivers(
  config: Config,
  { env, stop }: { env: NodeJS.ProcessEnv; stop: AbortSignal },
): Promise<readonly AlertTest[]> {
  const { options, deps } = partsOf(config, env)
  return checkReceivers(deps, options, stop)
}

/** What the config has, without secrets. */
export function receiversOf(config: Config) {
  const { options, deps } = partsOf(config, {})
  return listReceivers(deps, options)
}

function partsOf({ alerts, delivery }: Config, env: NodeJS.ProcessEnv) {
  const options = { alerts, proxy: sectionProxy(delivery) }
  const deps = receiverDepsOf({ clock: systemClock, env, clockOffsetMs: () => null }, options)
  return { options, deps: { ...deps, clock: systemClock } }
}
