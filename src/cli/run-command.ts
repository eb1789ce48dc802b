// run-command.ts: `run`: the daemon.

import { Command } from 'commander'
import { systemClock } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { newRandomId } from '../domain/ids.ts'
import { startGateway } from '../app/app.ts'
import { loadConfig } from '../config/config.ts'
import { openLevelStore, realDisk } from '../storage/storage.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { readVersion } from './package-version.ts'

export function runCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('run')
    .description('the daemon: takes messages in over MQTT and delivers them to the ingestion API')
    .requiredOption('--config <file>', 'the configuration')
    .addHelpText(
      'after',
      '\nSIGTERM or SIGINT stops it in order; a second one at once, which is safe. SIGHUP tries now what waits,' +
        '\nand reads the mapping and the device table again.',
    )
    .action(async ({ config: path }: { config: string }) => {
      const { config } = await loadConfig(path, { env: io.env })
      const gateway = await startGateway(
        {
          clock: systemClock,
          random: Math.random,
          newId: newRandomId,
          env: io.env,
          stdout: io.stdout,
          version: readVersion(),
          openStore: openLevelStore,
          disk: realDisk,
        },
        config,
        path,
      )
      io.onHangUp(() => {
        gateway.probe()
        // It never rejects for what is wrong in the files: a condition shows that.
        void gateway.reload('SIGHUP')
      })
      const end = await Promise.race([stopAsked(io.stop), gateway.broken])
      await gateway.stop(end instanceof GatewayError ? `${end.code}: ${end.why}` : end)
      if (end instanceof GatewayError) throw end
      done(0)
    })
}

/** Resolves with the name of the signal that asked for the end. */
function stopAsked(stop: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const asked = () => resolve(String(stop.reason))
    if (stop.aborted) asked()
    else stop.addEventListener('abort', asked, { once: true })
  })
}
