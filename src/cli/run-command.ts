// run-command.ts: `run`: the daemon.

import { Command } from 'commander'
import { systemClock, whenAborted } from '../std/clock.ts'
import { newRandomId } from '../domain/ids.ts'
import { realPlaces, startGateway, startHeapWork, systemKernelClock } from '../app/app.ts'
import { loadConfig, requireProxies } from '../config/config.ts'
import { deliveryOptions } from '../delivery/config.ts'
import { requireKeys } from '../delivery/delivery.ts'
import { checkInThread, openLevelStore, readTablesInThread, realDisk } from '../storage/storage.ts'
import { readVersion } from './terminal/package-version.ts'
import type { BuildCommand } from './terminal/terminal.ts'
import { notes } from './terminal/text-format.ts'

export const runCommand: BuildCommand = (io, done) =>
  new Command('run')
    .requiredOption('--config <file>', 'config of the daemon (required)')
    .option('--refuse-without-keys', 'end with status 2 where there are no keys for any provider')
    .addHelpText(
      'after',
      notes(
        'SIGTERM or SIGINT stops the daemon in order; a second one stops it at once, which is safe. ' +
          'SIGHUP reloads the config, presets and the device table, and retries the ingestion API.',
      ),
    )
    .action(async ({ config: path, refuseWithoutKeys }: { config: string; refuseWithoutKeys?: boolean }) => {
      const { config, files, secretFiles } = await loadConfig(path, { env: io.env })
      requireProxies(config, io.env)
      if (refuseWithoutKeys) await requireKeys(io.env, deliveryOptions(config.delivery))
      const gateway = await startGateway(
        {
          clock: systemClock,
          kernel: systemKernelClock(realPlaces(io.env)),
          random: Math.random,
          newId: newRandomId,
          env: io.env,
          stdout: io.stdout,
          version: readVersion(),
          openStore: openLevelStore,
          checkStore: checkInThread,
          readTables: readTablesInThread,
          startHeapWork,
          disk: realDisk,
          configFiles: files,
          secretFiles,
          stop: io.stop,
          endAtOnce: () => process.kill(process.pid, 'SIGKILL'),
        },
        config,
        path,
      )
      io.onHangUp(() => {
        gateway.probe()
        // Never rejects: a problem in the files is a condition.
        void gateway.reload('SIGHUP')
      })
      const failure = await Promise.race([whenAborted(io.stop), gateway.broken])
      await gateway.stop(failure ? `${failure.code}: ${failure.why}` : String(io.stop.reason))
      if (failure) throw failure
      done(0)
    })
