// Teams: only their members and admins see their DAGs.
import { Plus, UsersRound, X } from "lucide-react";
import { useMemo, useState } from "react";

import { api, read, type Schemas } from "../../api/client";
import { useRefusal } from "../../api/me";
import { enc } from "../../api/query";
import { formatNumber, useText } from "../../i18n";
import { Button } from "../../parts/Button";
import { commandLine } from "../../parts/CopyAs";
import { Select, TextField } from "../../parts/fields";
import { usePhone } from "../../parts/filters";
import type { Column } from "../../parts/VirtualTable";
import styles from "./admin.module.css";
import { AdminList } from "./AdminList";
import { BUILT_IN, type BuiltIn } from "./roles";
import { FormSheet, RemoveDialog } from "./sheets";

type Team = Schemas["TeamInfo"];
interface Member {
  username: string;
  role: BuiltIn;
}
const TEAMS = "/api/tradewind/v1/accounts/teams";

const load = async (signal: AbortSignal) => {
  const found = await read(api.GET("/api/tradewind/v1/accounts/teams", { signal }));
  return { rows: found.teams, total: found.total_entries };
};

export function TeamsSection() {
  const t = useText();
  const phone = usePhone();
  const refusal = useRefusal("edit:account");
  const columns = useMemo<Column<Team>[]>(() => {
    const found: Column<Team>[] = [
      { id: "name", title: t("admin.team"), width: "minmax(110px, 0.8fr)", render: (one) => <b title={one.name}>{one.name}</b> },
      { id: "members", title: t("admin.members"), width: "80px", right: true, render: (one) => <span className="figures">{formatNumber(one.members.length)}</span> },
      { id: "dags", title: t("admin.teamDags"), width: "minmax(110px, 1.6fr)", render: (one) => <code className="mono" title={dagsOf(one)}>{dagsOf(one)}</code> },
    ];
    if (!phone) found.push({ id: "description", title: t("admin.description"), width: "minmax(100px, 1.2fr)", render: (one) => <span className="muted" title={one.description}>{one.description}</span> });
    return found;
  }, [t, phone]);
  return (
    <AdminList
      name="teams" topics={[]} load={load} label={t("admin.teams")} columns={columns} rowKey={nameOf} text={teamText} add={{ label: t("admin.addTeam"), refused: refusal }}
      sheet={(one, onClose) => (one ? <TeamSheet team={one} refusal={refusal} onClose={onClose} /> : <NewTeamSheet onClose={onClose} />)}
      empty={{ icon: <UsersRound size={28} aria-hidden />, title: t("admin.emptyTeams"), text: t("admin.emptyTeamsText"), code: "tradewind teams create finance\ntradewind teams add-member finance -u bob -r user\ntradewind teams add-dags finance --dag-id 'invoice_*'" }}
    />
  );
}

const nameOf = (one: Team): string => one.name;
const dagsOf = (one: Team): string => [...one.bundles, ...one.dags].join(", ");
const teamText = (one: Team): string => [one.name, one.description, ...one.members.map((member) => member.username), dagsOf(one)].join(" ");

function NewTeamSheet({ onClose }: { onClose: () => void }) {
  const t = useText();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const body = { name, description };
  return (
    <FormSheet
      title={t("admin.addTeam")} name="teams" savedText={t("admin.teamMade", { name })} onClose={onClose} refused={name ? undefined : t("admin.needsName")}
      copy={{ command: commandLine("tradewind", "teams", "create", name || "NAME", ...(description ? ["--description", description] : [])), method: "POST", path: TEAMS, body }}
      save={() => read(api.POST("/api/tradewind/v1/accounts/teams", { body }))}
    >
      {(errors) => (
        <>
          <TextField label={t("admin.name")} value={name} onChange={setName} error={errors.name} autoComplete="off" autoFocus />
          <TextField label={t("admin.description")} value={description} onChange={setDescription} error={errors.description} />
        </>
      )}
    </FormSheet>
  );
}

function linesOf(text: string): string[] {
  return [...new Set(text.split("\n").map((one) => one.trim()).filter(Boolean))];
}

function TeamSheet({ team, refusal, onClose }: { team: Team; refusal: string | undefined; onClose: () => void }) {
  const t = useText();
  const [members, setMembers] = useState<readonly Member[]>(team.members as Member[]);
  const [dags, setDags] = useState(team.dags.join("\n"));
  const [bundles, setBundles] = useState(team.bundles.join("\n"));
  const [deleting, setDeleting] = useState(false);
  const { name } = team;
  const wanted = members.filter((one) => one.username);
  const changed = wanted.filter((one) => !team.members.some((old) => old.username === one.username && old.role === one.role));
  const gone = team.members.filter((old) => !wanted.some((one) => one.username === old.username));
  const body = { dags: linesOf(dags), bundles: linesOf(bundles) };
  const change = (at: number, changes: Partial<Member>): void => setMembers(members.map((one, place) => (place === at ? { ...one, ...changes } : one)));

  async function save(): Promise<void> {
    const path = (username: string) => ({ params: { path: { team: name, username } } });
    for (const one of changed) await read(api.PUT("/api/tradewind/v1/accounts/teams/{team}/members/{username}", { ...path(one.username), body: { role: one.role } }));
    for (const one of gone) await read(api.DELETE("/api/tradewind/v1/accounts/teams/{team}/members/{username}", path(one.username)));
    await read(api.PUT("/api/tradewind/v1/accounts/teams/{team}/dags", { params: { path: { team: name } }, body }));
  }

  if (deleting) {
    return (
      <RemoveDialog
        name="teams" title={t("admin.deleteTitle", { name })} text={t("admin.deleteTeam")} doneText={t("admin.deleted", { name })}
        remove={() => read(api.DELETE("/api/tradewind/v1/accounts/teams/{team}", { params: { path: { team: name } } }))}
        copy={{ command: commandLine("tradewind", "teams", "delete", name), method: "DELETE", path: `${TEAMS}/${enc(name)}` }}
        onClose={(removed) => (removed ? onClose() : setDeleting(false))}
      />
    );
  }
  const given = (words: readonly string[], before: readonly string[]): string[] => words.filter((one) => !before.includes(one));
  const commands = [
    ...changed.map((one) => commandLine("tradewind", "teams", "add-member", name, "-u", one.username, "-r", one.role)),
    ...gone.map((one) => commandLine("tradewind", "teams", "remove-member", name, "-u", one.username)),
    ...given(body.dags, team.dags).map((one) => commandLine("tradewind", "teams", "add-dags", name, "--dag-id", one)),
    ...given(body.bundles, team.bundles).map((one) => commandLine("tradewind", "teams", "add-dags", name, "--bundle", one)),
    ...given(team.dags, body.dags).map((one) => commandLine("tradewind", "teams", "remove-dags", name, "--dag-id", one)),
    ...given(team.bundles, body.bundles).map((one) => commandLine("tradewind", "teams", "remove-dags", name, "--bundle", one)),
  ];
  return (
    <FormSheet
      title={t("admin.teamTitle", { name })} name="teams" savedText={t("admin.saved", { name })} onClose={onClose} refused={refusal} onDelete={refusal ? undefined : () => setDeleting(true)}
      copy={{ command: commands.length ? commands.join("\n") : undefined, method: "PUT", path: `${TEAMS}/${enc(name)}/dags`, body }} save={save}
    >
      {(errors) => (
        <>
          {team.description && <p className="muted">{team.description}</p>}
          <p className="muted">{t("admin.teamText")}</p>
          <fieldset className={styles.group}>
            <legend>{t("admin.members")}</legend>
            <ul className={styles.lines}>
              {members.map((one, at) => (
                <li key={at}>
                  <TextField label={t("admin.login")} value={one.username} onChange={(username) => change(at, { username })} readOnly={team.members.some((old) => old.username === one.username)} />
                  <Select label={t("admin.role")} labelled value={one.role} onChange={(role) => change(at, { role })} choices={BUILT_IN.map((value) => ({ value, label: value }))} />
                  <Button look="quiet" icon label={t("admin.removeLine")} onPress={() => setMembers(members.filter((_, place) => place !== at))}><X size={14} /></Button>
                </li>
              ))}
            </ul>
            <span><Button compact onPress={() => setMembers([...members, { username: "", role: "user" }])}><Plus size={14} aria-hidden /> {t("admin.addMember")}</Button></span>
          </fieldset>
          <TextField label={t("admin.teamDagIds")} value={dags} onChange={setDags} lines={4} mono hint={t("admin.teamDagsHint")} error={errors.dags} />
          <TextField label={t("admin.teamBundles")} value={bundles} onChange={setBundles} lines={2} mono hint={t("admin.teamBundlesHint")} error={errors.bundles} />
        </>
      )}
    </FormSheet>
  );
}
