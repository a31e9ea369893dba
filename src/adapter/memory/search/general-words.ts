import { stemOf } from '../tokenizer.ts';

// Words that texts about any subject have. In a small store they are as rare as others, so that their number says nothing.

/** Titles of persons in both languages. */
const TITLES = 'dr mr mrs ms prof herr frau';

/** What people do, say and want, units of time, and how things are. */
const ENGLISH =
  'add added agree agreed allow another answer anyone anything anyway arrive arrived ask asked back bad begin began beginning believe best ' +
  'better big bit book booked bring brought buy bought call called came care change check close closed come cost costs day decide decided ' +
  'done easy end enough even evening ever every everyone everything expect far feel felt few find fine finish first found friday full gave ' +
  'give given go goes going gone good got great guess happen happened hard hear heard help hope hour idea important keep kept kind knew ' +
  'know known last late later least leave left less let list little long look looked lot love made mail make many maybe mean meant meet ' +
  'met minute moment monday month monthly morning move moved much name near never new next nice night note number offer often ok okay old ' +
  'open order ordered ought paid part pay people per place plan please point price problem promise put question quite reach read really ' +
  'remember reply right run said same saturday saw say see seem seen send sent set share shall show side since small somebody someone ' +
  'something soon sorry start started stay still stop sunday sure take taken talk tell thank thanks thing think thought thursday time ' +
  'today told tomorrow tonight took top total tried try tuesday turn two usual usually wait walk wants wanted way wednesday week weekend ' +
  'weekly went whole will wish word work worked write wrote wrong year yearly yes yesterday yet';

const GERMAN =
  'aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bekommen bin bis bist bitte bleibt brauche ' +
  'braucht bringt da dabei dafur damit dann daran darf das dass davon dazu dein deine dem den denn der des die dies diese diesem diesen ' +
  'dieser dieses doch dort du durch ein eine einem einen einer eines einfach er erst erste ersten es etwa etwas euch euer eure finden ' +
  'findet frage fragt fruh fur gab ganz gar geben geht gehen gemacht genau gerade gern gerne gesagt gestern gibt ging gleich gut gute ' +
  'guten hab habe haben hast hat hatte hatten heisst heute hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja ' +
  'jahr jahre jahren jede jedem jeden jeder jedes jemand jetzt kam kann kannst kein keine keinen kommen kommt konnen konnte kosten kostet ' +
  'kurz lange lassen leider letzte letzten liegt mach mache machen macht mag man mehr mein meine meinem meinen meiner meint mich mir mit ' +
  'mochte monat monate monaten montag morgen muss mussen musste nach nachste nachsten nachster neu neue neuen neuer neues nicht nichts nie ' +
  'noch nun nur ob oder ohne paar sagen sagt sagte samstag schon schreibt sehen sehr sein seine seinem seinen seiner seit sich sicher sie ' +
  'sieht sind so sogar soll sollen sollte sonntag sonst steht stellt stunde tag tage tagen termin tut uber uhr um und uns unser unsere ' +
  'unserem unseren unter viel viele vom von vor wann war waren warum was wegen weil weiss weiter welche wenn wer werde werden wie wieder ' +
  'will willst wir wird wissen wo woche wochen wohl wollen wollte wurde wurden zahlen zeit ziemlich zu zum zur zwei zwischen dienstag ' +
  'mittwoch donnerstag freitag';

const GENERAL = new Set(`${TITLES} ${ENGLISH} ${GERMAN}`.split(' ').map(stemOf));

/** Whether a stem says nothing about the subject of a text: two texts that have it in common may be of anything. */
export const isGeneral = (stem: string): boolean => GENERAL.has(stem);
