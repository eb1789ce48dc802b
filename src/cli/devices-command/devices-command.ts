// devices-command.ts: `devices`: what the running daemon knows of its devices, and the rows of the device
// table of a config. Entry file of this folder.

import { groupCommand } from '../operation-command.ts'
import { acceptByConfig, addCommand } from './devices-add-command.ts'
import { importCommand } from './devices-import-command.ts'
import { showCommand } from './devices-show-command.ts'

export const devicesCommand = groupCommand(
  'devices',
  { show: showCommand, add: addCommand, import: importCommand },
  { accept: { instead: acceptByConfig } },
)
