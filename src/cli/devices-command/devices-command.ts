// devices-command.ts: `devices`: what the running daemon knows of its devices, and the rows of the device
// table of a config. Entry file of this folder.

import { groupCommand } from '../operation-command.ts'
import { acceptByConfig, addCommand } from './devices-add-command.ts'
import { importCommand } from './devices-import-command.ts'
import { messagesText } from './device-messages-text.ts'

export const devicesCommand = groupCommand(
  'devices',
  { add: addCommand, import: importCommand },
  {
    accept: { instead: acceptByConfig },
    show: { always: { messages: '1' }, textBelow: messagesText },
  },
)
