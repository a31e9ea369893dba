import { stem } from './words.ts';

// Words that people use for what tools of APIs call by another name. A group per line; a word may be in several.

/** Verbs for the same action. */
const VERBS = `
create add new make open insert write register submit draft compose build generate define provision put start
delete remove destroy drop erase trash discard clear unset purge kick expel evict uninstall clean detach wipe
update edit change modify set patch replace rename adjust alter configure correct fix revise tweak put
get read fetch show view retrieve see display describe inspect load detail info open
list all browse enumerate every show get overview which
search find query lookup look filter locate discover
run execute trigger start launch dispatch invoke kick begin fire
rerun retry repeat redo again resend redeliver restart
stop cancel abort kill terminate end halt shut pause suspend interrupt
send post publish message notify push deliver share write
reply respond answer comment
upload attach import put store
download export save backup dump
move transfer relocate migrate
copy duplicate clone fork replicate
merge combine join
approve accept confirm allow grant review sign
reject deny decline dismiss refuse disapprove
request ask invite
assign give delegate hand
enable activate on allow turn
disable deactivate off block forbid turn
close resolve finish complete done archive
reopen restore recover undelete unarchive revert undo rollback
lock freeze protect
compare diff difference changed versus
check verify test validate ensure
count number total many usage statistic metric analytic often
watch subscribe follow monitor track
mute unsubscribe ignore unfollow unwatch silence
star bookmark favorite favourite like pin save
react emoji like thumb reaction
mark flag set
connect link attach associate integrate
schedule plan book arrange
promote upgrade raise
rotate renew refresh reset regenerate
sync synchronize refresh pull
tag label categorize
log record track
pay charge bill
refund reimburse return
hide conceal minimize
sort order rank
`;

/** Nouns for the same thing, and short forms. */
const NOUNS = `
pr pull merge
repo repository project
org organization organisation company
doc document page article wiki
dir directory folder
msg message chat dm
db database table source
env environment workspace
config configuration setting option preference
auth authentication login
ticket issue bug task item card story
label tag category
ci workflow action pipeline build job check
member collaborator person people user participant contributor colleague teammate
log history activity event audit timeline
notification inbox alert message
group team
subgroup child nested sub
board project kanban
column field property attribute
row record entry item page
comment note feedback discussion remark thread
file document attachment asset content
image picture photo screenshot
snippet gist paste code
finding alert vulnerability warning problem
container docker image package
package artifact module dependency library
branch ref
version release revision
commit change
webhook callback hook
url link address
permission access role right privilege
owner admin administrator maintainer
invitation invite pending join
key credential secret token password
variable token constant parameter
server machine host instance vm
milestone deadline due sprint
customer client account
profile account user
email mail
calendar meeting appointment event
price cost fee
invoice bill
order purchase
draft wip
description summary body text content
title name subject heading
status state progress condition
cloud remote codespace
dashboard report chart
design mockup file frame
component element widget node block
style theme color
team workspace
space workspace folder
parent ancestor
template blueprint preset
`;

const OTHERS = new Map<string, Set<string>>();
for (const group of `${VERBS}${NOUNS}`.split('\n')) {
  const stems = group
    .split(' ')
    .filter((word) => word !== '')
    .map(stem);
  for (const word of stems) {
    const known = OTHERS.get(word) ?? new Set();
    for (const other of stems) if (other !== word) known.add(other);
    OTHERS.set(word, known);
  }
}

const NONE: ReadonlySet<string> = new Set();

/** Other words for a word, all in the form of `stem`. */
export const synonymsOf = (word: string): ReadonlySet<string> => OTHERS.get(word) ?? NONE;
