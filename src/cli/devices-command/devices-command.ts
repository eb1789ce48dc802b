// devices-command.ts: `devices`: what the running daemon knows of its devices: those that are listed, were
// seen or were refused, the ones that need a person first. Entry file of this folder.

import { Command, Option } from 'commander'
import { deviceOrderNames, deviceOrders, deviceStateNames } from '../../domain/device-state.ts'
import { quote } from '../../std/quote.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { wholeNumber } from '../terminal/option-values.ts'
import { printAnswer, type BuildCommand } from '../terminal/terminal.ts'
import { notes, listsByDefault } from '../terminal/text-format.ts'
import { acceptCommand, addCommand } from './devices-add-command.ts'
import { forgetCommand } from './devices-forget-command.ts'
import { importCommand } from './devices-import-command.ts'
import { muteCommand, unmuteCommand } from './devices-mute-command.ts'
import { listText, type DeviceList } from './devices-text.ts'
import { showCommand } from './devices-show-command.ts'

export const devicesCommand: BuildCommand = (io, done) =>
  new Command('devices')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(showCommand(io, done))
    .addCommand(addCommand(io, done))
    .addCommand(importCommand(io, done))
    .addCommand(acceptCommand(io, done))
    .addCommand(forgetCommand(io, done))
    .addCommand(muteCommand(io, done))
    .addCommand(unmuteCommand(io, done))
    .addHelpText('after', listsByDefault('devices'))

const filters = ['state', 'source', 'provider', 'address'] as const

type ListOptions = DaemonOptions &
  Partial<Record<(typeof filters)[number], string>> & { sort: string; limit: number }

const listCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('list'))
    .description('List all devices, the silent and refused ones first: since when, and why.')
    .argument('[text]', 'only devices with this in their key, asset, client id or user name')
    .addOption(new Option('--state <state>', 'only devices in this state').choices(deviceStateNames))
    .option('--source <name>', 'only devices whose last message this source took')
    .option('--provider <name>', 'only devices of this provider')
    .option('--address <address>', 'only devices whose client has this address, or one that begins with it')
    .addOption(
      new Option('--sort <order>', 'what comes first, see below').choices(deviceOrderNames).default('state'),
    )
    .option('--limit <count>', 'devices to list, at most 1000', wholeNumber(1, 1000), 100)
    .addHelpText(
      'after',
      notes(
        'A device is silent when its last message is longer ago than 10 times its usual gap, and than 30 s. ' +
          'A device that is in the device table and never sent is in the list, too, and so is a client of the broker ' +
          'that is connected and sends nothing, or sends only messages that name no device.',
        `Orders of --sort: ${deviceOrderNames.map((name) => `${name} (${deviceOrders[name]})`).join('; ')}.`,
      ),
    )
    .action(async (find: string | undefined, options: ListOptions) => {
      const { sort, limit } = options
      const query = new URLSearchParams({ limit: String(limit), sort })
      for (const name of filters) if (options[name] !== undefined) query.set(name, options[name])
      if (find !== undefined) query.set('find', find)
      const list = await requestByOptions(options, io, {
        path: `/devices?${query.toString()}`,
        method: 'GET',
      })
      const given = filters.flatMap((name) =>
        options[name] === undefined ? [] : [`${name} ${quote(options[name], 64)}`],
      )
      const width = 'columns' in io.stdout ? Number(io.stdout.columns) : Number.POSITIVE_INFINITY
      printAnswer(io, options, list as DeviceList, (answer) =>
        listText(answer, { width, find, filters: given }),
      )
      done(0)
    })
